"""File formats: a reader, a writer and what their files can contain. Spark lists new files; tasks read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.connectors.connector import (
    Connector,
    Inputs,
    Reader,
    Rereading,
    SchemaReader,
    SinkSide,
    SourceSide,
    TargetContext,
)
from rejoinder.connectors.files.options import ALTERABLE, FILE_OPTIONS, check_files, check_flat
from rejoinder.connectors.files.target import FilesTarget
from rejoinder.connectors.files.writers import Writer, write_csv, write_json, write_parquet
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.formats.arrow_files import read_arrow
from rejoinder.formats.csv.csv_files import read_csv
from rejoinder.formats.json.json_lines import read_json
from rejoinder.formats.parquet import parquet_schema, read_parquet
from rejoinder.formats.text_files import read_text_lines
from rejoinder.ir.catalog import Sink, Source
from rejoinder.ir.type_names import listed_columns, spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FileSource(SourceSide):
    """Files in a folder. Those that were read can be read again as long as they exist unchanged."""

    options = frozenset(FILE_OPTIONS)
    needs = ("path",)
    alterable = frozenset(ALTERABLE)
    rereading = Rereading.FILES

    def __init__(self, reader: Reader, schema_reader: SchemaReader | None = None) -> None:
        self.reader, self.schema_reader = reader, schema_reader

    def check(self, source: Source) -> None:
        check_files(source)

    def splits(self, session: SparkSession, source: Source, inputs: Inputs) -> DataFrame:
        from rejoinder.exchange.streaming.source_frames import file_splits

        return file_splits(session, source.name, source.options)


class CsvSource(FileSource):
    """CSV files, which have options of their own and no nested values."""

    def check(self, source: Source) -> None:
        check_files(source, is_csv=True)
        check_flat(source)


class JsonSource(FileSource):
    """JSON files, one record per line. A record need not have all fields, and may be an envelope."""

    is_typed = False

    def is_json(self, options: Mapping[str, str]) -> bool:
        return True


class TextSource(FileSource):
    """Text files, one row per line."""

    def check(self, source: Source) -> None:
        super().check(source)
        if source.schema.types != [pa.string()] or source.op or source.diff:
            raise InvalidSql(
                f"`{source.name}` USING text does not have exactly one column of type STRING",
                detail=listed_columns(source.schema),
                hint="declare one STRING column for the line, and split it in a view or with computed columns",
            )


class FileSink(SinkSide):
    """Files that are named by their epoch."""

    needs = ("path",)

    def __init__(self, write: Writer) -> None:
        self.write = write

    def target(self, context: TargetContext) -> FilesTarget:
        return FilesTarget(context.sink, context.identity, self.write)


class CsvSink(FileSink):
    """CSV files. `guard` keeps spreadsheets from reading text as a formula."""

    takes = ("guard",)
    choices: Mapping[str, tuple[str, ...]] = {"guard": ("true", "false")}

    def check(self, sink: Sink, schema: pa.Schema) -> None:
        nested = [field for field in schema if pa.types.is_nested(field.type) or pa.types.is_binary(field.type)]
        if nested:
            raise Unsupported(
                f"column `{nested[0].name}` of `{sink.view}` cannot be written as CSV",
                detail=f"it is of type {spark_name(nested[0].type)}",
                hint="write parquet or json, or select its parts in the view",
            )


ARROW = Connector("arrow", FileSource(read_arrow))
CSV = Connector("csv", CsvSource(read_csv), CsvSink(write_csv))
JSON = Connector("json", JsonSource(read_json), FileSink(write_json))
PARQUET = Connector("parquet", FileSource(read_parquet, parquet_schema), FileSink(write_parquet))
TEXT = Connector("text", TextSource(read_text_lines))
