"""The changes of an epoch by key, for sinks with one row per key: insert, update or delete of that row."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

INSERTED, UPDATED, DELETED = 0, 1, 2
ACT = "_act"


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
