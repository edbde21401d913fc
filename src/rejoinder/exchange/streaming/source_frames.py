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
from rejoinder.exchange.tasks.spark_rounds import SPLITS, is_pattern
from rejoinder.kernels.arrow.scatter import encode

BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
PACKED_ROWS = 1 << 17
# Spark passes over a file that is a week older than the newest one, without a word.
ANY_AGE = "36500d"
# Unless the user says otherwise an epoch takes this much of a source per core: a backlog must fit the workers' memory.
EPOCH_BYTES = 64 << 20
PASSED_ON = {
    "maxfilespertrigger": "maxFilesPerTrigger",
    "maxbytespertrigger": "maxBytesPerTrigger",
    "pathglobfilter": "pathGlobFilter",
    "recursivefilelookup": "recursiveFileLookup",
    "maxfileage": "maxFileAge",
    "cleansource": "cleanSource",
    "sourcearchivedir": "sourceArchiveDir",
    "latestfirst": "latestFirst",
    "filenameonly": "fileNameOnly",
}


def file_splits(session: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    """New files of a folder as they appear. Spark remembers which were read; their content it does not touch."""
    path = options["path"]
    check_path(name, path)
    reader = session.readStream.format("binaryFile").schema(BINARY_FILE).option("maxFileAge", ANY_AGE)
    if not {"maxfilespertrigger", "maxbytespertrigger"} & set(options):
        reader = reader.option("maxBytesPerTrigger", EPOCH_BYTES * session.sparkContext.defaultParallelism)
    for key, value in options.items():
        if key in PASSED_ON:
            reader = reader.option(PASSED_ON[key], value)
    return reader.load(literal(path)).select(
        F.lit(name).alias("source"),
        "path",
        F.unix_millis("modificationTime").alias("modified"),
        F.lit(None).cast("binary").alias("payload"),
    )


def check_path(name: str, path: str) -> None:
    """Refuse a local path that is not there; what lies elsewhere only Spark can tell."""
    local = path.removeprefix("file://")
    if "://" not in local and not is_pattern(local) and not os.path.exists(local):
        raise MissingInput(
            f"path `{path}` of `{name}` does not exist", hint="create the folder, or correct OPTIONS (path '…')"
        )


def literal(path: str) -> str:
    """Keep Spark from taking a folder that is there for a pattern, and from looking where the JVM was started."""
    local = path.removeprefix("file://")
    if "://" not in local and os.path.isfile(local):  # as a pattern of one name: Spark refuses a path that is a file
        folder, name = os.path.split(os.path.abspath(local))
        return f"{_escaped(folder)}/{{{_escaped(name).replace(',', chr(92) + ',')}}}"
    if "://" not in local and not os.path.isabs(local):
        return f"{_escaped(str(Path.cwd()))}/{_escaped(local) if os.path.exists(local) else local}"
    return _escaped(local) if is_pattern(local) and os.path.exists(local) else path


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def frame_splits(frame: DataFrame, name: str) -> DataFrame:
    """The rows of any streaming DataFrame, packed into Arrow bytes where they are."""
    return frame.mapInArrow(Pack(name), SPLITS)


@dataclass(frozen=True)
class Pack:
    """Packs the batches of a partition into splits."""

    name: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a split for every `PACKED_ROWS` rows or so."""
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(b.num_rows for b in held) >= PACKED_ROWS:
                yield self._split(held)
                held = []
        if any(batch.num_rows for batch in held):
            yield self._split(held)

    def _split(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        payload = encode(pa.Table.from_batches(batches))
        return pa.RecordBatch.from_pydict(
            {
                "source": [self.name],
                "path": pa.array([None], pa.string()),
                "modified": [partition],
                "payload": [payload],
            },
        )


def frame_columns(frame: DataFrame) -> list[tuple[str, str]]:
    """The names of a DataFrame's columns and their types as SQL."""
    return [(field.name, _type_text(field.dataType)) for field in frame.schema]


def _type_text(kind: DataType) -> str:
    """A type as SQL that can be read back whatever the fields are called, as `simpleString` cannot."""
    if isinstance(kind, StructType):
        fields = ((field.name.replace("`", "``"), _type_text(field.dataType)) for field in kind)
        return f"STRUCT<{', '.join(f'`{name}`: {text}' for name, text in fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_type_text(kind.keyType)}, {_type_text(kind.valueType)}>"
    return kind.simpleString()


def streams_in(frame: DataFrame) -> list[str]:
    """Spark's own sources in a DataFrame, in the order of the plan; the same text for the same one."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(at) for at in range(leaves.size())]
    return [str(leaf.output().toString()) for leaf in found if leaf.isStreaming()]


def union_splits(frames: list[DataFrame]) -> DataFrame:
    """All sources of a flow as one stream of splits."""
    return reduce(lambda left, right: left.union(right), frames)
