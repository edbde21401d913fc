"""Message values: a row as a JSON object, as an Avro record, or the only column besides the key as it is."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rejoinder.connectors.kafka.message_options import frame_of, value_column
from rejoinder.formats.avro.avro_writer import avro_schema, encode_avro
from rejoinder.ir.catalog import Sink
from rejoinder.kernels.arrow.columns import single_chunk
from rejoinder.kernels.duckdb.json_text import json_rows


@dataclass(frozen=True)
class Values:
    """Encodes the rows of a sink's view as message values. Sent to tasks."""

    sink: Sink

    @property
    def is_json(self) -> bool:
        """Whether values are JSON text, which can be put into envelopes."""
        return self.sink.options.get("value_format", "json") == "json"

    def write(self, rows: pa.Table) -> pa.Array:
        """Return the value of each row. Raises `pa.ArrowInvalid` for a row that does not fit the given Avro schema."""
        if self.is_json:
            return single_chunk(json_rows(rows))
        if self.sink.options["value_format"] == "avro":
            return encode_avro(rows, self.schema(rows.schema), frame_of(self.sink))
        return single_chunk(rows.column(value_column(self.sink, rows.schema).name)).cast(pa.binary())

    def schema(self, columns: pa.Schema) -> str:
        """Return the Avro schema from the options, or one of all columns."""
        return self.sink.options.get("avro_schema") or avro_schema(self.sink.view, columns)
