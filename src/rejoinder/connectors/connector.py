"""The contract of a connector: what a format can do as a source, as a sink, or both. `registry.py` lists them all.

Options, checks and capabilities are plain data and pure functions, which all layers above use: nobody tests the name of
a format. Code that needs pyspark is in the sub-package `spark` of a connector. It is imported when it is called, so
that the test driver and the core API work without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rejoinder.connectors.delivery import Host, Target
from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import REJECTED_SCHEMA, Kind, Sink, Source
from rejoinder.secret_options import redacted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reader = Callable[[Any, str, Source, int], Iterator[tuple[bool, pa.Table]]]
SchemaReader = Callable[[Any, str, Source], pa.Schema]
"""Reads an open file: (file, path, source, rows per chunk) → (True, rows) or (False, rejected records)."""


class Rereading(Enum):
    """How delivered rows of a source are read again, for a view that is created later."""

    NEVER = "never"
    FILES = "files"
    """From the files that were read. They are checked, since they may have changed."""
    SPARK = "spark"
    """By Spark, up to the committed position (`SourceSide.records`)."""


@dataclass(frozen=True)
class Inputs:
    """What a process provides for sources: DataFrames by source, and the folder of inserted rows of a source."""

    frames: Mapping[str, DataFrame]
    inbox: Callable[[str], str]


class SourceSide:
    """How a format is read. A connector overrides what differs from these defaults."""

    options: frozenset[str] = frozenset()
    """Its own options, in lower case. Options that every source has are not listed here."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of options that are passed on."""
    needs: tuple[str, ...] = ()
    """Options that a definition must have."""
    alterable: frozenset[str] = frozenset()
    """Its own options that ALTER can change. Rows that were read, and positions, keep their meaning."""
    noun = "it"
    """Its input in messages, as in "a topic is not read again"."""
    reader: Reader | None = None
    """Reads a file of it; None if its rows are not in files."""
    schema_reader: SchemaReader | None = None
    """Reads the schema of a file whose columns can be read apart; None if a reader needs all of them."""
    rereading = Rereading.NEVER
    keeps_changes = False
    """Whether the flow keeps its changes, since its rows exist nowhere else."""
    takes_diffs = False
    """Whether rows arrive as inserts and deletes, so that a changelog needs no `op` or `diff` column."""
    is_partitioned = False
    """Whether records have a partition of their own."""
    is_typed = True
    """Whether its files have typed columns. Otherwise a column that is NULL in all records is probably misspelled."""
    passes_rows = False
    """Whether rows pass through the JVM. Otherwise Spark sees only paths."""
    rejected_schema: pa.Schema = REJECTED_SCHEMA
    """The columns of the relation of rejected records."""

    @property
    def rereads_files(self) -> bool:
        """Whether delivered rows are read again from their files."""
        return self.rereading is Rereading.FILES

    def keeps_files(self, source: Source) -> bool:
        """Whether the files of a source stay where they are, so that later views can read them again."""
        return self.rereads_files and source.options.get("cleansource", "off").lower() == "off"

    def normalized(self, name: str, kind: Kind, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options, each under one name. Raises a `PlanningError` that names the wrong one."""
        return dict(options)

    def check(self, source: Source) -> None:
        """Raise a `PlanningError` if columns and options do not fit. `source` has the columns that records have."""

    def is_json(self, options: Mapping[str, str]) -> bool:
        """Whether records are JSON, so that they can be envelopes."""
        return False

    def partitions(self, session: SparkSession, source: Source) -> list[int]:
        """Return the partitions that exist now; empty if there are none. Raises `InputError` if the input is absent."""
        return []

    def splits(self, session: SparkSession, source: Source, inputs: Inputs) -> DataFrame:
        """Return the input as a stream of splits. Raises `InputError` if the input is absent."""
        raise NotImplementedError

    def lost_records(self, session: SparkSession, source: Source, start: str, end: str) -> str | None:
        """Return why records between two positions cannot be read again; None if they can.

        May take seconds. Raises `InputError` if that cannot be determined now.
        """
        raise NotImplementedError

    def records(self, session: SparkSession, source: Source, start: str, end: str) -> DataFrame:
        """Return the records between two positions as splits."""
        raise NotImplementedError


@dataclass(frozen=True)
class TargetContext:
    """What a target is made from: the sink, its identity, the view's columns, the host, functions by sink."""

    sink: Sink
    identity: str
    schema: pa.Schema
    host: Host
    functions: Mapping[str, Callable[[int, Any], object]]

    def session(self) -> SparkSession:
        """Return the Spark session. Raises `Unsupported` if there is none."""
        if self.host.session is None:
            raise Unsupported(
                f"sink `{self.sink.name}` USING {self.sink.format} needs Spark",
                detail="this is the test driver, which has none",
                hint="run it with rejoinder.Flow, or write files here",
            )
        return self.host.session


class SinkSide:
    """How a format is written. A connector overrides what differs from these defaults."""

    needs: tuple[str, ...] = ()
    """Options that a definition must have."""
    takes: tuple[str, ...] = ()
    """Other options."""
    prefix: str | None = None
    """The prefix of options that are passed on."""
    choices: Mapping[str, tuple[str, ...]] = {}
    """Options with a fixed set of values."""
    modes: tuple[str, ...] = ("append",)
    """The modes, the default first."""
    keyed_modes: tuple[str, ...] = ()
    """Modes that need a key."""
    sends_messages = False
    """Whether the test driver records its messages (`Driver.messages`)."""
    runs_user_code = False
    """Whether its errors are those of a user's function, which may quote rows anywhere."""

    def target(self, context: TargetContext) -> Target:
        """Return the target of a sink, without any effect on it. Raises `Unsupported` or `UnknownName`."""
        raise NotImplementedError

    def check(self, sink: Sink, schema: pa.Schema) -> None:
        """Raise a `PlanningError` if the columns of the view cannot be written as the options say."""

    def tells_changes(self, sink: Sink) -> bool:
        """Whether a reader can distinguish an added row from a retracted one."""
        return True

    def shown_options(self, sink: Sink, schema: pa.Schema) -> dict[str, str]:
        """Return the options for SHOW SINKS, without secrets."""
        return redacted(sink.options)


@dataclass(frozen=True)
class Connector:
    """A format, by the name that USING gives it."""

    name: str
    source: SourceSide | None = None
    sink: SinkSide | None = None
    is_listed: bool = True
    """Whether SQL can define it. DataFrames and functions are given in Python."""
