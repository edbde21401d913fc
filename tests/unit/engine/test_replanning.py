"""A planner that asks for other arrangements than the state has: they are filled before the next epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.engine import engine
from rejoinder.engine.planner import Plan, plan
from rejoinder.plan.catalog import Catalog, Index
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

    monkeypatch.setattr(engine, "plan", newer)
    driver.restart()
    rows = {a["name"]: a["rows"] for a in driver.arrangements()}
    assert rows["a[x]"] == 2
    driver.insert("b", {"k": 2, "y": 2})
    assert driver.step()["v"] == [({"k": 2, "x": 20, "y": 2}, 1)]
    assert {a["name"]: a["rows"] for a in driver.arrangements()}["a[x]"] == 2
