"""Output watermarks: the least of what was received and of what is kept; at window bounds; of views on views."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver
from tests.kit import flow, kept

SOURCES = """
CREATE STREAM o (id INT, t BIGINT, WATERMARK t);
CREATE STREAM d (id INT, t BIGINT, WATERMARK t);
CREATE STREAM r (id INT, t BIGINT, WATERMARK t);
CREATE STREAM c (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 2 MINUTES);
"""
JOIN = "SELECT o.id, o.t AS ot, d.t AS dt FROM o {} JOIN d ON o.id = d.id AND d.t BETWEEN o.t AND o.t + 10"
START = datetime(2024, 1, 1, 12)


def told(driver: Driver, **watermarks: int) -> dict[str, Any]:
    for name, time in watermarks.items():
        driver.watermark(name, time)
    driver.step()
    return driver.watermarks("v")


@pytest.mark.parametrize("query", [JOIN.format(""), JOIN.format("LEFT"), JOIN.format("LEFT") + " EMIT FINAL"])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_join_is_held_by_the_rows_that_it_keeps(query: str, parallelism: int) -> None:
    driver = flow(SOURCES, query, parallelism=parallelism)
    assert told(driver) == {}
    assert told(driver, o=50) == {"ot": 50}, "nothing is kept"
    driver.insert("o", {"id": 1, "t": 60})
    driver.step()
    driver.insert("o", {"id": 2, "t": 70})
    assert told(driver, o=100) == {"ot": 60}
    driver.restart(parallelism=2)
    assert driver.watermarks("v") == {"ot": 60}
    assert told(driver, d=71) == {"ot": 70, "dt": 71}, "the first order can find nothing any more"
    assert told(driver, d=500) == {"ot": 100, "dt": 500}


@pytest.mark.parametrize("query", [JOIN.format(""), JOIN.format("LEFT"), JOIN.format("LEFT") + " EMIT FINAL"])
def test_of_a_run_that_has_expired_in_part_the_bounds_count(query: str) -> None:
    driver = flow(SOURCES, query)
    driver.insert("o", {"id": 1, "t": 60}, {"id": 2, "t": 70})
    driver.step()
    assert told(driver, o=100, d=71) == {"ot": 61, "dt": 71}
    assert told(driver, d=81) == {"ot": 100, "dt": 81}


def test_a_join_of_joins_is_held_by_both() -> None:
    driver = flow(
        SOURCES,
        JOIN.format(""),
        "SELECT v.id, v.ot, v.dt, r.t AS rt FROM v JOIN r ON v.id = r.id AND r.t >= v.dt AND r.t <= v.dt + 5",
    )
    driver.insert("o", {"id": 1, "t": 10})
    driver.insert("d", {"id": 1, "t": 12})
    for name in "odr":
        driver.watermark(name, 14)
    driver.step()
    assert driver.watermarks("v") == {"ot": 10, "dt": 14}, "no order is left that the delivery could find"
    assert driver.watermarks("w")["dt"] == 12 and driver.watermarks("w")["rt"] <= 14
    for name in "odr":
        driver.watermark(name, 40)
    driver.step()
    assert driver.watermarks("w") == {"ot": 40, "dt": 40, "rt": 40}, "nothing is kept"


WINDOWS = "SELECT TUMBLE(ts, INTERVAL 5 MINUTES) AS w, count(*) AS n FROM c GROUP BY w"


@pytest.mark.parametrize("query", [WINDOWS, WINDOWS + " EMIT FINAL"])
def test_an_aggregate_has_watermarks_at_window_bounds_alone(query: str) -> None:
    driver = flow(SOURCES, query)
    for minute, bound in ((1, -5), (6, 0), (7, 5), (11, 5), (12.5, 10)):
        driver.insert("c", {"id": 1, "ts": START + timedelta(minutes=minute)})
        driver.step()
        assert driver.watermarks("v") == {"w": START + timedelta(minutes=bound)}


def test_of_two_windows_the_smaller_one_waits_for_the_larger() -> None:
    hours, minutes = "TUMBLE(ts, INTERVAL 1 HOUR)", "TUMBLE(ts, INTERVAL 5 MINUTES)"
    driver = flow(
        SOURCES, f"SELECT {hours} AS h, {minutes} AS m, count(*) AS n FROM c GROUP BY {hours}, {minutes} EMIT FINAL"
    )
    driver.insert("c", {"id": 1, "ts": START + timedelta(minutes=10)}, {"id": 1, "ts": START + timedelta(minutes=40)})
    assert driver.step()["v"] == []
    ten = START + timedelta(minutes=10)
    assert driver.watermarks("v") == {"h": START, "m": ten}, "the group of minute 10 is pending"


@pytest.mark.parametrize("kind", ["LEFT", "FULL", "LEFT ANTI"])
def test_a_row_that_waits_for_one_watermark_holds_though_another_has_ended_it(kind: str) -> None:
    driver = Driver()
    for name in "od":
        driver.sql(f"CREATE STREAM {name} (id INT, t BIGINT, u BIGINT, WATERMARK t, WATERMARK u)")
    on = "o.id = d.id AND d.t BETWEEN o.t AND o.t + 5 AND d.u BETWEEN o.u AND o.u + 100"
    driver.sql(f"CREATE VIEW v AS SELECT o.t, o.u FROM o {kind} JOIN d ON {on} EMIT FINAL")
    driver.insert("o", {"id": 1, "t": 10, "u": 10})
    driver.step()
    driver.watermark("o", 300, "t")
    driver.watermark("d", 200, "u")
    assert driver.step()["v"] == [] and driver.watermarks("v") == {"t": 10}, "no match can arrive, by u"
    driver.watermark("d", 300, "t")
    assert driver.step()["v"] == [({"t": 10, "u": 10}, 1)]
    assert driver.watermarks("v") == {"t": 300}


COUNTED = f"SELECT ot DIV 100 AS w, count(*) AS n FROM ({JOIN}) AS q GROUP BY ot DIV 100"


@pytest.mark.parametrize("query", [COUNTED.format(""), COUNTED.format("LEFT")])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_groups_of_a_join_are_final_once_nothing_is_kept_for_them(query: str, parallelism: int) -> None:
    driver = flow(SOURCES, query + " EMIT FINAL", query, parallelism=parallelism)
    driver.insert("o", {"id": 1, "t": 110})
    driver.insert("d", {"id": 1, "t": 112})
    driver.step()
    driver.watermark("o", 250)
    driver.watermark("d", 120)
    assert driver.step()["v"] == [], "another delivery could find the order"
    assert relations(driver) >= {"o", "aggregate"}
    driver.watermark("d", 121)
    assert driver.step()["v"] == [({"w": 1, "n": 1}, 1)], "by the bounds alone, one might find an order of 111"
    assert not relations(driver) & {"o", "aggregate"}
    driver.restart()
    driver.insert("o", {"id": 1, "t": 250})
    driver.insert("d", {"id": 1, "t": 255}, {"id": 1, "t": 121})
    driver.watermark("d", 300)
    assert driver.step()["v"] == []
    driver.watermark("o", 300)
    assert driver.step()["v"] == [({"w": 2, "n": 1}, 1)]


def relations(driver: Driver) -> set[str]:
    """The relations of which rows are kept, without the changes that wait."""
    return {name.partition("#")[0] for name in kept(driver) if "/" not in name}


def test_rows_of_a_join_above_expire_by_what_the_join_below_keeps() -> None:
    driver = flow(
        SOURCES,
        JOIN.format(""),
        "SELECT v.id, v.ot, r.t AS rt FROM v JOIN r ON v.id = r.id AND r.t BETWEEN v.ot AND v.ot + 5",
    )
    driver.insert("r", {"id": 1, "t": 150})
    driver.step()
    assert told(driver, o=100, d=20) == {"ot": 100, "dt": 20}
    assert "r" in relations(driver)
    assert told(driver, o=200) == {"ot": 200, "dt": 20}
    assert relations(driver) == set(), "no order below 200 is there to be found; by the bounds, one of 10 might be"


def test_a_column_without_a_bound_is_held_by_kept_rows_alone() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM o (id INT, t BIGINT, u BIGINT, WATERMARK t, WATERMARK u)")
    driver.sql("CREATE STREAM d (id INT, t BIGINT, WATERMARK t)")
    driver.sql("CREATE VIEW v AS SELECT o.u, o.t FROM o JOIN d ON o.id = d.id AND d.t BETWEEN o.t AND o.t + 10")
    driver.insert("o", {"id": 1, "t": 5, "u": 70})
    driver.watermark("o", 100, "u")
    driver.step()
    assert driver.watermarks("v") == {"u": 70}
    assert told(driver, d=16) == {"u": 100}
    with pytest.raises(Unsupported, match="kept forever"):
        driver.sql("CREATE VIEW w AS SELECT u, count(*) AS n FROM v GROUP BY u EMIT FINAL")


def test_what_is_not_known_of_a_run_is_as_old_as_the_bounds_allow() -> None:
    driver = flow(SOURCES, JOIN.format(""))
    driver.insert("o", {"id": 1, "t": 60})
    driver.step()
    engine = driver._engine
    unknown = {
        name: tuple(replace(part, refs=tuple(replace(ref, spans=()) for ref in part.refs)) for part in parts)
        for name, parts in engine.version.state.arrangements.items()
    }
    engine.version = replace(engine.version, state=replace(engine.version.state, arrangements=unknown))
    assert told(driver, o=100, d=30) == {"ot": 20, "dt": 30}
    assert told(driver, d=80) == {"ot": 70, "dt": 80}


def test_a_gate_stays_open_when_its_limit_is_not_persisted() -> None:
    """As when a newer version plans the same join in another way."""
    driver = flow(SOURCES, COUNTED.format("") + " EMIT FINAL")
    driver.insert("o", {"id": 1, "t": 110})
    driver.step()
    driver.insert("o", {"id": 2, "t": 590})
    driver.insert("d", {"id": 1, "t": 112}, {"id": 2, "t": 590})
    driver.step()
    driver.watermark("o", 500)
    driver.watermark("d", 121)
    assert driver.step()["v"] == [({"w": 1, "n": 1}, 1)], "what waits with it is in the same run"
    engine = driver._engine
    engine.version = replace(engine.version, watermarks=replace(engine.version.watermarks, persisted={}))
    driver.watermark("d", 130)
    assert driver.step()["v"] == []
    driver.watermark("d", 500)
    assert driver.step()["v"] == []
    assert [row["w"] for row in driver.table("v")] == [1]


def test_columns_that_can_change_at_any_time_have_none() -> None:
    driver = flow(SOURCES, "SELECT o.id, o.t FROM o JOIN d ON o.id = d.id")
    assert told(driver, o=5, d=5) == {}
    driver = flow(SOURCES, "SELECT id, t FROM o EMIT EVERY INTERVAL 1 MINUTE")
    assert told(driver, o=5) == {}
    driver = flow(SOURCES, "SELECT id, t FROM o EMIT WHEN WATERMARK PAST t")
    assert told(driver, o=5) == {"t": 5}


def test_views_show_their_watermarks() -> None:
    driver = flow(SOURCES, JOIN.format(""))
    told(driver, o=5, d=7)
    assert [row["watermarks"] for row in driver.sql("SHOW VIEWS")] == [{"ot": 5, "dt": 7}]
