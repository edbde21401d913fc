"""Values of messages: a row as a JSON object, as an Avro record, or the one column beside the key as it is."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rejoinder.formats.avro.avro_writer import avro_schema, encode_avro
from rejoinder.ir.catalog import Sink
from rejoinder.kernels.arrow.columns import single_chunk
from rejoinder.kernels.duckdb.json_text import json_rows
from rejoinder.sql.definitions.message_definition import frame_of, value_column


@dataclass(frozen=True)
class Values:
    """How a sink writes the rows of its view. Travels to tasks."""

    sink: Sink

    @property
    def is_json(self) -> bool:
        """Whether values are text, of which envelopes can be made."""
        return self.sink.options.get("value_format", "json") == "json"

    def write(self, rows: pa.Table) -> pa.Array:
        """The value of each row. Raises `pa.ArrowInvalid` for a row that the given Avro schema does not take."""
        if self.is_json:
            return single_chunk(json_rows(rows))
        if self.sink.options["value_format"] == "avro":
            return encode_avro(rows, self.schema(rows.schema), frame_of(self.sink))
        return single_chunk(rows.column(value_column(self.sink, rows.schema).name)).cast(pa.binary())

    def schema(self, columns: pa.Schema) -> str:
        """The Avro schema that is given, or else the one of all columns."""
        return self.sink.options.get("avro_schema") or avro_schema(self.sink.view, columns)
