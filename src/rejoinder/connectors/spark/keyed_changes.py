"""The changes of an epoch by key, for sinks with one row per key: insert, update or delete of that row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Target
from rejoinder.errors import SinkFailed
from rejoinder.ir.catalog import Sink

INSERTED, UPDATED, DELETED = 0, 1, 2
ACT = "_act"


@dataclass(frozen=True)
class TableTarget(Target):
    """A table that stores epochs. It has one row per key (mode 'upsert'), or the changes (mode 'append')."""

    sink: Sink
    identity: str
    schema: pa.Schema
    """The columns of the view."""
    session: SparkSession
    stores_epochs: ClassVar[bool] = True

    @property
    def is_keyed(self) -> bool:
        """Whether the table has one row per key instead of changes."""
        return self.sink.options.get("mode", "append") == "upsert"

    @property
    def columns(self) -> pa.Schema:
        """The columns that the table must have."""
        return self.schema if self.is_keyed else pa.schema([*self.schema, *DELIVERED_COLUMNS])


def quoted_name(name: str) -> str:
    """Return a column name quoted for Spark's expressions."""
    return "`" + name.replace("`", "``") + "`"


def by_key(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return a row per key: the new row (the old one if it is deleted), `_act`, and the number of new rows, `_copies`.

    The view has at most one row per key if `_copies` never exceeds one.
    """
    columns = [name for name in changes.columns if name not in ("_epoch", "_diff")]
    quoted = [quoted_name(name) for name in columns]
    grouped = changes.groupBy(*map(quoted_name, key)).agg(
        F.max_by(F.struct(*quoted), "_diff").alias("_row"),
        F.sum(F.when(F.col("_diff") > 0, F.col("_diff")).otherwise(0)).alias("_copies"),
        F.min("_diff").alias("_least"),
    )
    act = F.when(F.col("_copies") == 0, DELETED).when(F.col("_least") < 0, UPDATED).otherwise(INSERTED)
    rows = [F.col(f"_row.{quoted_field}").alias(name) for name, quoted_field in zip(columns, quoted, strict=True)]
    return grouped.select(*rows, act.alias(ACT), "_copies")


def duplicate_key(rows: DataFrame, key: Sequence[str]) -> dict[str, object] | None:
    """Return a key that has more than one row, with their number; None if there is none."""
    duplicates = rows.where("_copies > 1").select(*map(quoted_name, key), "_copies").limit(1).collect()
    return duplicates[0].asDict() if duplicates else None


def one_per_key(sink: Sink, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the change of each key, cached. Raises `SinkFailed` if the view has more than one row for a key."""
    rows = by_key(changes, key).cache()
    duplicate = duplicate_key(rows, key)
    if duplicate is not None:
        rows.unpersist()
        copies = duplicate.pop("_copies")
        values = ", ".join(f"{name} = {value!r}" for name, value in duplicate.items())
        raise SinkFailed(
            f"`{sink.view}` has {copies} rows for one key of sink `{sink.name}`",
            detail=f"columns of the key: {', '.join(duplicate)}",
            values=f"key {values}",
            hint="choose key columns that identify a row, group by the key in the view, or append changes instead",
        )
    return rows


def unexpected_rows(sink: Sink, place: str, detail: str, values: str | None = None) -> SinkFailed:
    """Return the error for a table that already has rows to insert, or lacks rows to replace."""
    return SinkFailed(
        f"table `{place}` does not contain what sink `{sink.name}` has written",
        detail=detail,
        values=values,
        hint=f"is ({sink.options['key']}) unique in `{sink.view}`, and does nobody else write to the table? Nothing "
        f"was changed; to start over, empty the table, DROP SINK {sink.name} and create it again",
    )


def check_columns(sink: Sink, place: str, needed: Sequence[str], actual: Sequence[str]) -> None:
    """Raise `SinkFailed` if a table lacks a column of the view. The case of names is ignored."""
    present = {name.lower() for name in actual}
    missing = [name for name in needed if name.lower() not in present]
    if missing:
        raise SinkFailed(
            f"table `{place}` of sink `{sink.name}` has no column `{missing[0]}`",
            detail=f"needed: {', '.join(needed)}; found: {', '.join(actual)}",
            hint="add the column, use another table, or select other columns in the view",
        )
