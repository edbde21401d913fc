"""The changes of an epoch by key: what happens to the one row of each key, for sinks that keep a row per key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

INSERTED, UPDATED, DELETED = 0, 1, 2
ACT = "_act"


def quoted_name(name: str) -> str:
    """A column as Spark's expressions name it, whatever is in its name."""
    return "`" + name.replace("`", "``") + "`"


def by_key(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row per key: the new row (the old one if it is gone), `_act`, and in `_copies` how many new ones there are.

    The view has a row for each key at most if `_copies` never exceeds one.
    """
    columns = [name for name in changes.columns if name not in ("_epoch", "_diff")]
    quoted = [quoted_name(name) for name in columns]
    grouped = changes.groupBy(*map(quoted_name, key)).agg(
        F.max_by(F.struct(*quoted), "_diff").alias("_row"),
        F.sum(F.when(F.col("_diff") > 0, F.col("_diff")).otherwise(0)).alias("_copies"),
        F.min("_diff").alias("_least"),
    )
    act = F.when(F.col("_copies") == 0, DELETED).when(F.col("_least") < 0, UPDATED).otherwise(INSERTED)
    rows = [F.col(f"_row.{each}").alias(name) for name, each in zip(columns, quoted, strict=True)]
    return grouped.select(*rows, act.alias(ACT), "_copies")


def duplicate_key(rows: DataFrame, key: Sequence[str]) -> dict[str, object] | None:
    """A key that has more than one row, with the number of them; None if there is none."""
    found = rows.where("_copies > 1").select(*map(quoted_name, key), "_copies").limit(1).collect()
    return found[0].asDict() if found else None
