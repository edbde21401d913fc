"""A flow whose view is replaced, and that can be killed while that happens: `python edit_victim.py folder`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from rejoinder.testing import Driver

OLD = "SELECT o.id, o.a, c.n FROM o JOIN c ON o.c = c.c WHERE a > 10"
NEW = "SELECT o.id, o.a, c.n FROM o JOIN c ON o.c = c.c WHERE a > 15 OR a < 3"
EDIT = f"CREATE OR REPLACE VIEW v AS {NEW}; CREATE VIEW more AS SELECT id FROM v; ALTER VIEW u RENAME TO renamed"
REPLACED = 2
"""The epoch that replaces the view."""


def start(folder: Path) -> Driver:
    """Define a flow with two views, a third one above, and a sink; run two epochs."""
    driver = Driver(store=folder / "state", parallelism=2)
    driver.sql("CREATE STREAM o (id BIGINT, c BIGINT, a BIGINT); CREATE TABLE c (c BIGINT PRIMARY KEY, n STRING)")
    driver.sql(f"CREATE VIEW v AS {OLD}; CREATE VIEW w AS SELECT n, sum(a) AS s FROM v GROUP BY n")
    driver.sql("CREATE VIEW u AS SELECT id FROM o WHERE id < 2")
    driver.sink("w", "parquet", name="totals", path=str(folder / "out"))
    driver.insert("c", {"c": 1, "n": "x"}, {"c": 2, "n": "y"})
    for first in (0, 10):
        driver.insert("o", *({"id": i, "c": i % 2 + 1, "a": i} for i in range(first, first + 10)))
        driver.step()
    return driver


def outcome(driver: Driver, folder: Path) -> dict[str, object]:
    """What a user sees: the content of every view at every epoch, and what the sink has."""
    contents: dict[str, object] = {"epoch": driver.epoch}
    for view in driver.catalog.views:
        first = driver._engine.version.created[view.name]
        for epoch in range(max(0, first), driver.epoch + 1):
            contents[f"{view.name}@{epoch}"] = sorted(map(str, driver.table(view.name, as_of=epoch)))
    rows = Counter[tuple[str, int]]()
    for row in pq.read_table(folder / "out").to_pylist():
        rows[row["n"], row["s"]] += row["_diff"]
    return contents | {"out": {row: count for row, count in rows.items() if count}}


if __name__ == "__main__":
    start(Path(sys.argv[1])).sql(EDIT)
