"""A planner that asks for other arrangements than the state has: they are filled before the next epoch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rejoinder.engine import engine
from rejoinder.engine.hydration import redefinition
from rejoinder.ir.catalog import Catalog, Index
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.planning import Plan
from rejoinder.planner import plan
from rejoinder.testing import Driver


def test_what_a_newer_planner_wants_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(store=tmp_path / "state")
    driver.sql("CREATE STREAM a (k BIGINT, x BIGINT)")
    driver.sql("CREATE STREAM b (k BIGINT, y BIGINT)")
    driver.sql("CREATE VIEW v AS SELECT a.k, x, y FROM a JOIN b ON a.k = b.k")
    driver.insert("a", {"k": 1, "x": 10}, {"k": 2, "x": 20})
    driver.insert("b", {"k": 1, "y": 1})
    driver.step()

    def newer(catalog: Catalog, *rest: object) -> Plan:
        return plan(Catalog(catalog.relations, (*catalog.indexes, Index("extra", "a", ("x",)))), *rest)  # type: ignore[arg-type]

    for module in (engine, redefinition):
        monkeypatch.setattr(module, "plan", newer)
    driver.restart()
    rows = {a["name"]: a["rows"] for a in driver.arrangements()}
    assert rows["a[x]"] == 2
    driver.insert("b", {"k": 2, "y": 2})
    assert driver.step()["v"] == [({"k": 2, "x": 20, "y": 2}, 1)]
    assert {a["name"]: a["rows"] for a in driver.arrangements()}["a[x]"] == 2


def test_a_view_is_not_moved_to_an_arrangement_whose_rows_have_expired() -> None:
    """Skew asks for rows of a key by time. To fill that from what another view keeps, for a minute, would lose rows."""
    driver, noon = Driver(parallelism=2), datetime(2026, 1, 1, 12)
    for name, columns in (("a", "x INT, y INT"), ("b", "x INT, z INT"), ("c", "y INT, z INT"), ("d", "x INT, y INT")):
        driver.sql(f"CREATE STREAM {name} (t TIMESTAMP, {columns}, WATERMARK t DELAY OF INTERVAL 0 SECONDS)")
    near = "{0}.t BETWEEN {1}.t - INTERVAL {2} AND {1}.t + INTERVAL {2}"
    driver.sql(
        "CREATE VIEW hour AS SELECT a.x, b.z, c.y FROM a"
        f" JOIN b ON a.x = b.x AND {near.format('b', 'a', '1 HOUR')}"
        f" JOIN c ON c.y = a.y AND {near.format('c', 'a', '1 HOUR')}"
        f" AND c.z = b.z AND {near.format('c', 'b', '1 HOUR')}"
    )
    minute = near.format("d", "a", "1 MINUTE")
    driver.sql(f"CREATE VIEW minute AS SELECT a.x FROM a JOIN d ON a.x = d.x AND a.y = d.y AND {minute}")
    driver.insert("a", *({"t": noon, "x": x, "y": 1} for x in range(3000)))
    driver.insert("b", {"t": noon, "x": 7, "z": 7})
    driver.step()
    for name, one, two in (("a", "x", "y"), ("b", "x", "z"), ("c", "y", "z"), ("d", "x", "y")):
        driver.insert(name, {"t": noon + timedelta(minutes=40), one: -1, two: -1})
    driver.step()
    driver.sql("CREATE VIEW another AS SELECT z FROM b")
    driver.insert("c", {"t": noon + timedelta(minutes=41), "y": 1, "z": 7})
    assert ({"x": 7, "z": 7, "y": 1}, 1) in driver.step()["hour"]


def test_a_flow_that_has_not_grown_much_is_planned_once_when_it_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (k BIGINT, x BIGINT); CREATE STREAM b (k BIGINT, y BIGINT)")
    driver.sql("CREATE VIEW v AS SELECT a.k, x, y FROM a JOIN b ON a.k = b.k")
    planned: list[int] = []

    def counted(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
        planned.append(sum(each.rows for each in statistics.values()))
        return plan(catalog, statistics)

    def restart(rows: int) -> list[int]:
        """Add rows to both inputs, and start twice. The rows of arrangements, by the statistics of each plan."""
        numbers = range(rows)
        driver.insert("a", *({"k": k, "x": k} for k in numbers))
        driver.insert("b", *({"k": k, "y": k} for k in numbers))
        driver.step()
        for _ in range(2):
            driver.restart()
            driver.insert("a", {"k": -1, "x": 1})
            driver.step()  # commits the statistics
        counts, planned[:] = list(planned), []
        return counts

    for module in (engine, redefinition):
        monkeypatch.setattr(module, "plan", counted)
    assert restart(600) == [0, 1200, 1200]  # it was defined without rows
    assert restart(300) == [1200, 1200]
    assert len(restart(3000)) == 3
