"""Sources as streaming DataFrames of splits: file paths from Spark's file source, or rows packed as Arrow bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from rejoinder.errors import MissingInput
from rejoinder.exchange.tasks.spark_rounds import is_pattern
from rejoinder.ir.splits import FILE, SPLITS_DDL, RowsSplit, split_batch
from rejoinder.kernels.arrow.scatter import encode

BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
PACKED_ROWS = 1 << 17
# By default Spark silently skips files that are a week older than the newest one.
ANY_AGE = "36500d"
# By default an epoch reads this many bytes of a source per core: a backlog must fit into the memory of the workers.
EPOCH_BYTES = 64 << 20
# Spark ignores the case of the names of options.
SPARK_OPTIONS = (
    *("maxfilespertrigger", "maxbytespertrigger", "pathglobfilter", "recursivefilelookup", "maxfileage"),
    *("cleansource", "sourcearchivedir", "latestfirst", "filenameonly"),
)


def file_splits(session: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    """Return a stream of the new files of a folder. Spark tracks which were read; it does not read their content."""
    path = options["path"]
    check_path(name, path)
    reader = session.readStream.format("binaryFile").schema(BINARY_FILE).option("maxFileAge", ANY_AGE)
    if not {"maxfilespertrigger", "maxbytespertrigger"} & set(options):
        reader = reader.option("maxBytesPerTrigger", EPOCH_BYTES * session.sparkContext.defaultParallelism)
    for key, value in options.items():
        if key in SPARK_OPTIONS:
            reader = reader.option(key, value)
    return reader.load(literal(path)).select(
        F.lit(FILE).alias("kind"),
        F.lit(name).alias("scan"),
        "path",
        F.unix_millis("modificationTime").alias("number"),
        F.lit(None).cast("binary").alias("payload"),
    )


def inserted_splits(session: SparkSession, name: str, options: Mapping[str, str], folder: str) -> DataFrame:
    """Return a stream of the files that `insert` and `delete` write to a folder, in the order of the calls."""
    number = F.regexp_extract("path", r"(\d+)-[0-9a-f]{8}\.arrow$", 1).cast("bigint")
    # Files are identified by name, not by folder, so that the state may be moved.
    files = {**options, "path": f"{literal(folder)}/*.arrow", "filenameonly": "true"}
    return file_splits(session, name, files).withColumn("number", number)


def check_path(name: str, path: str) -> None:
    """Raise `MissingInput` for a local path that does not exist; remote paths are checked by Spark."""
    local = path.removeprefix("file://")
    if "://" not in local and not is_pattern(local) and not os.path.exists(local):
        raise MissingInput(
            f"path `{path}` of `{name}` does not exist", hint="create the folder, or correct OPTIONS (path '…')"
        )


def literal(path: str) -> str:
    """Return a path that Spark does not take for a pattern if it exists, nor as relative to the folder of the JVM."""
    local = path.removeprefix("file://")
    if "://" not in local and os.path.isfile(local):  # as a pattern of one name: Spark rejects the path of a file
        folder, name = os.path.split(os.path.abspath(local))
        return f"{_escaped(folder)}/{{{_escaped(name).replace(',', chr(92) + ',')}}}"
    if "://" not in local and not os.path.isabs(local):
        return f"{_escaped(str(Path.cwd()))}/{_escaped(local) if os.path.exists(local) else local}"
    return _escaped(local) if is_pattern(local) and os.path.exists(local) else path


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def frame_splits(frame: DataFrame, name: str) -> DataFrame:
    """Return the rows of any streaming DataFrame as splits of Arrow bytes, packed in its own tasks."""
    return frame.mapInArrow(Pack(name), SPLITS_DDL)


@dataclass(frozen=True)
class Pack:
    """Packs the batches of a partition into splits."""

    name: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a split for every `PACKED_ROWS` rows or so."""
        buffered: list[pa.RecordBatch] = []
        for batch in batches:
            buffered.append(batch)
            if sum(part.num_rows for part in buffered) >= PACKED_ROWS:
                yield self._split(buffered)
                buffered = []
        if any(batch.num_rows for batch in buffered):
            yield self._split(buffered)

    def _split(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        return split_batch([RowsSplit(self.name, encode(pa.Table.from_batches(batches)), partition)])


def frame_columns(frame: DataFrame) -> list[tuple[str, str]]:
    """Return the names of a DataFrame's columns and their types as SQL."""
    return [(field.name, _type_text(field.dataType)) for field in frame.schema]


def _type_text(kind: DataType) -> str:
    """Return a type as SQL, with quoted field names, unlike `simpleString`."""
    if isinstance(kind, StructType):
        fields = ((field.name.replace("`", "``"), _type_text(field.dataType)) for field in kind)
        return f"STRUCT<{', '.join(f'`{name}`: {text}' for name, text in fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_type_text(kind.keyType)}, {_type_text(kind.valueType)}>"
    return kind.simpleString()


def streams_in(frame: DataFrame) -> list[str]:
    """Return an identifying text for each of Spark's own streaming sources in a DataFrame, in the order of the plan."""
    nodes = frame._jdf.queryExecution().analyzed().collectLeaves()
    leaves = [nodes.apply(number) for number in range(nodes.size())]
    return [str(leaf.output().toString()) for leaf in leaves if leaf.isStreaming()]


def union_splits(frames: list[DataFrame]) -> DataFrame:
    """Return all sources of a flow as one stream of splits."""
    return reduce(lambda left, right: left.union(right), frames)
