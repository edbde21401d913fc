"""Warm up: run a small flow of three joined sources on the same session, in a temporary folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.host.temporary_folders import short_lived_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TURNS = 24
ROWS = 200


def warm_up(session: SparkSession, parallelism: int) -> None:
    """Run some epochs of a three-way join, so that JVM, workers and planner are warm."""
    from rejoinder.api.flow import Flow

    with short_lived_folder("warm-up") as folder:
        flow = Flow(f"{folder}/state", spark=session, parallelism=parallelism)
        for name, key in (("a", "x"), ("b", "x"), ("c", "y")):
            columns = f"{key} BIGINT, {name}v BIGINT, y{name} BIGINT"
            flow.sql(f"CREATE CHANGELOG {name} ({columns}) OPTIONS (maxFilesPerTrigger '1')")
        flow.sql(
            "CREATE VIEW warm AS SELECT a.x, av + bv AS v, cv FROM a JOIN b ON a.x = b.x JOIN c ON b.yb = c.y "
            "WHERE av >= 0"
        )
        for turn in range(TURNS):
            rows = range(turn * ROWS, (turn + 1) * ROWS)
            flow.insert("a", [{"x": i, "av": i, "ya": i} for i in rows])
            flow.insert("b", [{"x": i, "bv": i, "yb": i} for i in rows])
            flow.insert("c", [{"y": i, "cv": i, "yc": i} for i in rows])
        flow.run()
