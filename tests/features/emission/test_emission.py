"""EMIT: the clock or the watermark decides when changes are emitted; each result once, in the right epoch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from rejoinder.errors import AmbiguousName, InvalidSql, RejoinderError, UnknownName, Unsupported
from rejoinder.testing import Driver
from tests.kit import at, changed, flow

SOURCES = """
CREATE STREAM clicks (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 2 MINUTES);
CREATE STREAM rates (cur STRING, rate INT, ts TIMESTAMP, WATERMARK ts);
CREATE STREAM orders (id INT, cur STRING, ts TIMESTAMP, WATERMARK ts);
CREATE TABLE people (id INT, name STRING, PRIMARY KEY (id));
"""
VALID = (
    "(SELECT cur, MAX(rate) AS rate, VALIDITY_WINDOW(ts) AS w FROM rates GROUP BY cur, VALIDITY_WINDOW(ts)) v"
    " ON o.cur = v.cur AND WINDOW_START(v.w) <= o.ts AND o.ts < WINDOW_END(v.w)"
)
PER_WINDOW = (
    "SELECT WINDOW_START(TUMBLE(ts, INTERVAL '5' MINUTE)) AS s, count(*) AS n FROM clicks"
    " GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)"
)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_interval_nets_what_happened_in_between(parallelism: int) -> None:
    driver = flow(SOURCES, "SELECT count(*) AS n FROM clicks EMIT EVERY INTERVAL 10 SECONDS", parallelism=parallelism)
    for time in (1_000, 3_000):
        driver.insert("clicks", {"id": time, "ts": at(0)})
        assert changed(driver, time) == []
    driver.insert("clicks", {"id": 1, "ts": at(0)})
    assert changed(driver, 11_000) == [(0, -1), (2, 1)], "what came after the tick waits for the next"
    driver.restart(parallelism=2)
    assert changed(driver, 19_000) == []
    assert changed(driver, 20_000) == [(2, -1), (3, 1)], "an epoch on the tick lets out"
    assert changed(driver, 60_000) == []
    assert driver.table("v") == [{"n": 3}]


def test_final_windows_are_emitted_once_in_the_epoch_that_makes_them_final() -> None:
    driver = flow(SOURCES, f"{PER_WINDOW} EMIT FINAL")
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(4)})
    assert changed(driver) == []
    driver.insert("clicks", {"id": 3, "ts": at(3)}, {"id": 4, "ts": at(6, 59)})
    assert changed(driver) == [], "the watermark is at 12:04:59"
    driver.insert("clicks", {"id": 5, "ts": at(7)})
    assert changed(driver) == [(at(0), 3, 1)], "its own rows move the watermark"
    assert driver.watermarks("v") == {"s": at(5)}, "at the bounds of windows"
    driver.restart()
    driver.insert("clicks", {"id": 6, "ts": at(30)})
    assert changed(driver) == [(at(5), 2, 1)]
    driver.insert("clicks", {"id": 7, "ts": at(59)})
    assert changed(driver) == [(at(30), 1, 1)]


TUMBLED = "TUMBLE(ts, INTERVAL 5 MINUTES)"
NAMED = f"SELECT {TUMBLED} AS w, count(*) AS n FROM clicks"


@pytest.mark.parametrize(
    "query",
    [
        f"{NAMED} GROUP BY w EMIT WHEN WATERMARK PAST WINDOW_END(w)",
        f"{NAMED} GROUP BY w EMIT WHEN WATERMARK PAST w.end",
        f"{NAMED} GROUP BY 1 EMIT WHEN WATERMARK PAST w.`end`",
        f"{NAMED} GROUP BY {TUMBLED} EMIT WHEN WATERMARK PAST {TUMBLED}.end",
        f"SELECT w.end AS e, count(*) AS n FROM (SELECT {TUMBLED} AS w FROM clicks) GROUP BY w "
        "EMIT WHEN WATERMARK PAST e",
    ],
)
def test_the_end_of_a_window_may_be_named_by_an_output(query: str) -> None:
    driver = flow(SOURCES, query)
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(4)})
    assert changed(driver) == []
    driver.insert("clicks", {"id": 3, "ts": at(7)})
    assert [(row[1], diff) for *row, diff in changed(driver)] == [(2, 1)], "the watermark is at the end"


@pytest.mark.parametrize(("past", "emitted"), [("ts", []), ("c.ts", [1])])
def test_outputs_go_before_columns_of_from_unless_these_are_qualified(past: str, emitted: list[int]) -> None:
    driver = flow(
        SOURCES, f"SELECT id, ts + INTERVAL 1 HOUR AS ts, ts AS x FROM clicks c EMIT WHEN WATERMARK PAST {past}"
    )
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(4)})
    assert [row[0] for row in changed(driver)] == emitted


@pytest.mark.parametrize("past", ["w.end", "WINDOW_END(w)", "a.w.end"])
@pytest.mark.parametrize("item", ["a.w AS w", "a.w"])
def test_an_output_may_be_called_like_an_ambiguous_column(item: str, past: str) -> None:
    groups = "(SELECT TUMBLE(ts, INTERVAL 5 MINUTES) AS w, COUNT(*) AS n FROM clicks GROUP BY 1)"
    driver = flow(
        SOURCES, f"SELECT {item}, a.n FROM {groups} a JOIN {groups} b ON a.w = b.w EMIT WHEN WATERMARK PAST {past}"
    )
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(4)})
    assert changed(driver) == []
    driver.insert("clicks", {"id": 3, "ts": at(7)})
    assert [(row[1], diff) for *row, diff in changed(driver)] == [(2, 1)]


def test_an_ambiguous_name_in_emit_is_called_that_and_columns_are_listed() -> None:
    groups = "(SELECT TUMBLE(ts, INTERVAL 5 MINUTES) AS w, COUNT(*) AS n FROM clicks GROUP BY 1)"
    join = f"SELECT a.n FROM {groups} a JOIN {groups} b ON a.w = b.w EMIT WHEN WATERMARK PAST"
    with pytest.raises(AmbiguousName, match="column `w` is ambiguous"):
        flow(SOURCES, f"{join} w.end")
    with pytest.raises(UnknownName) as failure:
        flow(SOURCES, f"{join} z.end")
    assert "columns here: `a.w`, `a.n`, `b.w`, `b.n`" in str(failure.value)


def test_a_column_that_is_called_end_is_no_end_of_a_window() -> None:
    driver = flow(SOURCES, "SELECT w.id FROM (SELECT id, ts AS end FROM clicks) w EMIT WHEN WATERMARK PAST w.end")
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(3)})
    assert changed(driver) == [], "one more row of 12:01 could come"


def test_pending_changes_are_dropped_when_they_are_emitted() -> None:
    driver = flow(SOURCES, f"{PER_WINDOW} EMIT FINAL")
    driver.insert("clicks", *({"id": n, "ts": at(n)} for n in range(50)))
    driver.step()
    driver.insert("clicks", {"id": 99, "ts": datetime(2024, 1, 2)})
    driver.step()
    held = [ref for part in driver._engine.version.state.arrangements["v/pending[*]"] for ref in part.refs]
    assert sum(ref.rows for ref in held) == 1, "the last window alone"


def test_past_a_column_means_that_no_row_at_that_time_comes() -> None:
    driver = flow(SOURCES, "SELECT id FROM orders EMIT WHEN WATERMARK PAST ts")
    driver.insert("orders", {"id": 1, "cur": "e", "ts": at(1)}, {"id": 2, "cur": "e", "ts": None})
    assert changed(driver) == []
    assert [(row["input"], row["behind"]) for row in driver.late("v")] == [("orders", None)], "it has no time"
    driver.watermark("orders", at(1))
    assert changed(driver) == []
    driver.watermark("orders", at(1, 1))
    assert changed(driver) == [(1, 1)]


TWO_TIMES = (
    "CREATE STREAM a (id INT, t BIGINT, u BIGINT, WATERMARK t DELAY OF 0, WATERMARK u DELAY OF 0);"
    "CREATE STREAM b (id INT, t BIGINT, u BIGINT, WATERMARK t DELAY OF 0, WATERMARK u DELAY OF 0);"
)


@pytest.mark.parametrize(
    ("query", "waits_for"),
    [
        ("SELECT a.id FROM a", ["a.t"]),
        ("SELECT t, count(*) AS n FROM a GROUP BY t", ["a.t"]),
        ("SELECT a.id FROM a JOIN b ON a.id = b.id AND b.u BETWEEN a.t AND a.t + 5", ["a.t", "b.u"]),
        ("SELECT a.id FROM a ASOF JOIN b MATCH_CONDITION (a.t >= b.u) ON a.id = b.id", ["a.t", "b.u"]),
        ("SELECT a.id FROM a JOIN b ON a.id = b.id", ["a.t", "b.t", "b.u"]),
        ("SELECT a.id FROM a JOIN a o ON a.id = o.id AND a.t = o.u", ["a.t", "a.u"]),
        ("SELECT a.id FROM (SELECT id, t FROM a UNION ALL SELECT id, u AS t FROM b) a", ["a.t", "b.u"]),
    ],
)
def test_it_waits_for_the_times_of_the_release_and_those_compared_with_them(query: str, waits_for: list[str]) -> None:
    driver = Driver()
    driver.sql(TWO_TIMES)
    driver.sql(f"CREATE VIEW v AS {query} EMIT WHEN WATERMARK PAST {'a.' if 'a.id' in query else ''}t")
    (gate,) = driver._engine.version.plan.program.gates_of("v")
    assert sorted(f"{source}.{column}" for source, column in gate.origins) == waits_for


def test_a_slow_time_of_the_same_source_holds_nothing() -> None:
    driver = Driver()
    driver.sql(TWO_TIMES)
    driver.sql("CREATE VIEW v AS SELECT id, t FROM a EMIT WHEN WATERMARK PAST t")
    driver.insert("a", {"id": 1, "t": 1000, "u": 10})
    assert changed(driver) == []
    driver.insert("a", {"id": 2, "t": 1001, "u": 11})
    assert changed(driver) == [(1, 1000, 1)]
    assert driver.watermarks("v") == {"t": 1001}


def test_a_validity_join_that_hides_the_window_is_final_once_the_order_time_is_past() -> None:
    driver = flow(SOURCES, f"SELECT o.id, v.rate FROM orders o JOIN {VALID} EMIT WHEN WATERMARK PAST WINDOW_END(v.w)")
    driver.insert("orders", {"id": 1, "cur": "e", "ts": at(5)})
    driver.insert("rates", {"cur": "e", "rate": 114, "ts": at(1)})
    assert changed(driver) == []
    driver.insert("rates", {"cur": "e", "rate": 116, "ts": at(3)})
    assert changed(driver) == []
    driver.watermark("rates", at(6))
    assert changed(driver) == [], "orders has not got that far"
    driver.watermark("orders", at(6))
    assert changed(driver) == [(1, 116, 1)], "once, and right"


@pytest.mark.parametrize(
    ("kind", "wanted"), [("JOIN", []), ("LEFT JOIN", [(1, None, 1)]), ("SEMI JOIN", []), ("ANTI JOIN", [(1, 1)])]
)
def test_a_version_that_is_left_out_still_ends_the_one_before(kind: str, wanted: list[Any]) -> None:
    shown = "o.id, v.rate" if kind in ("JOIN", "LEFT JOIN") else "o.id"
    driver = flow(SOURCES, f"SELECT {shown} FROM orders o {kind} {VALID} AND v.rate > 0 EMIT WHEN WATERMARK PAST o.ts")
    driver.insert("rates", {"cur": "e", "rate": 2, "ts": at(1)}, {"cur": "e", "rate": 0, "ts": at(6)})
    changed(driver)
    driver.insert("orders", {"id": 1, "cur": "e", "ts": at(10)})
    changed(driver)
    for source in ("rates", "orders"):
        driver.watermark(source, at(20))
    assert changed(driver) == wanted


@pytest.mark.parametrize("kind", ["LEFT", "FULL"])
def test_rows_without_a_match_need_a_time_of_their_own(kind: str) -> None:
    shown = f"SELECT o.id, v.rate, WINDOW_END(v.w) AS until FROM orders o {kind} JOIN {VALID} EMIT WHEN WATERMARK PAST"
    with pytest.raises(InvalidSql, match=r"rates\.ts that rows without a match do not have[\s\S]*COALESCE"):
        flow(SOURCES, f"{shown} WINDOW_END(v.w)")
    driver = flow(SOURCES, f"{shown} COALESCE(WINDOW_END(v.w), o.ts)")
    driver.insert("orders", {"id": 1, "cur": "e", "ts": at(5)}, {"id": 2, "cur": "f", "ts": at(6)})
    assert changed(driver) == []
    driver.insert("rates", {"cur": "e", "rate": 114, "ts": at(2)}, {"cur": "e", "rate": 119, "ts": at(9)})
    assert changed(driver) == []
    for source in ("rates", "orders"):
        driver.watermark(source, at(20))
    assert changed(driver) == [(1, 114, at(9), 1), (2, None, None, 1)]


@pytest.mark.parametrize("policy", ["FINAL", "WHEN WATERMARK PAST WINDOW_END(w)"])
def test_groups_of_rows_without_a_match_need_a_time_of_their_own(policy: str) -> None:
    """Their window is NULL, at which nothing ends: they would be emitted with every epoch, and retracted."""

    def counted(time: str, where: str = "") -> Driver:
        window = f"TUMBLE({time}, INTERVAL 5 MINUTES)"
        near = "o.cur = r.cur AND r.ts BETWEEN o.ts AND o.ts + INTERVAL 1 MINUTE"
        rows = f"SELECT {window} AS w, count(*) AS n FROM orders o LEFT JOIN rates r ON {near} {where}"
        return flow(SOURCES, f"{rows} GROUP BY {window} EMIT {policy}")

    for where in ("", "WHERE r.rate IS NULL OR r.rate > 1"):
        with pytest.raises(InvalidSql, match=r"rates\.ts that rows without a match do not have[\s\S]*COALESCE"):
            counted("r.ts", where)
    counted("r.ts", "WHERE r.rate > 1")
    driver = counted("COALESCE(r.ts, o.ts)")
    driver.insert("orders", {"id": 1, "cur": "e", "ts": at(5)}, {"id": 2, "cur": "f", "ts": at(6)})
    driver.insert("rates", {"cur": "e", "rate": 114, "ts": at(6)})
    assert changed(driver) == []
    for source in ("rates", "orders"):
        driver.watermark(source, at(20))
    assert [row[-2:] for row in changed(driver)] == [(2, 1)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.id, r.rate FROM orders o ASOF LEFT JOIN late_rates r MATCH_CONDITION (o.ts >= r.ts) ON o.cur = r.cur"
        " EMIT WHEN WATERMARK PAST o.ts",
        f"SELECT o.id, v.rate FROM orders o JOIN {VALID.replace('rates', 'late_rates')}"
        " EMIT WHEN WATERMARK PAST v.w.end",
    ],
)
def test_versions_without_a_watermark_cannot_be_waited_for(query: str) -> None:
    driver = Driver()
    driver.sql(SOURCES + "CREATE STREAM late_rates (cur STRING, rate INT, ts TIMESTAMP);")
    with pytest.raises(InvalidSql, match=r"a watermark of `late_rates`.`ts`[\s\S]*later version[\s\S]*WATERMARK ts"):
        driver.sql(f"CREATE VIEW v AS {query}")


def test_a_validity_join_that_shows_the_window_waits_for_its_end() -> None:
    driver = flow(
        SOURCES, f"SELECT o.id, WINDOW_END(v.w) AS until FROM orders o JOIN {VALID} EMIT WHEN WATERMARK PAST v.w.end"
    )
    driver.insert("orders", {"id": 1, "cur": "e", "ts": at(5)})
    driver.insert("rates", {"cur": "e", "rate": 114, "ts": at(1)}, {"cur": "e", "rate": 119, "ts": at(9)})
    for source in ("rates", "orders"):
        driver.watermark(source, at(8))
    assert changed(driver) == []
    for source in ("rates", "orders"):
        driver.watermark(source, at(9))
    assert changed(driver) == [(1, at(9), 1)]


def test_a_new_view_takes_what_is_final_and_keeps_the_rest() -> None:
    driver = Driver()
    driver.sql(SOURCES)
    driver.sql("CREATE INDEX i ON clicks (id)")
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(20)})
    driver.step()
    driver.sql(f"CREATE VIEW v AS {PER_WINDOW} EMIT FINAL")
    assert driver.table("v") == [{"s": at(0), "n": 1}]
    driver.insert("clicks", {"id": 3, "ts": at(40)})
    assert changed(driver) == [(at(20), 1, 1)]


REFUSED = [
    ("SELECT id FROM clicks EMIT NEVER", InvalidSql),
    ("SELECT id FROM clicks EMIT EVERY", InvalidSql),
    ("SELECT id FROM clicks EMIT EVERY INTERVAL 0 SECONDS", InvalidSql),
    ("SELECT id FROM clicks EMIT EVERY INTERVAL 1 MONTH", InvalidSql),
    ("SELECT id FROM clicks EMIT FINAL", Unsupported),
    ("SELECT id FROM clicks EMIT", InvalidSql),
    ("SELECT id FROM clicks EMIT WHEN WATERMARK PAST )", InvalidSql),
    ("SELECT id FROM clicks EMIT WHEN WATERMARK PAST ts, id", InvalidSql),
    ("SELECT id FROM clicks EMIT WHEN WATERMARK PAST ts ts", InvalidSql),
    ("SELECT id FROM clicks EMIT WHEN WATERMARK PAST ts EMIT CHANGES", InvalidSql),
    ("SELECT id, count(*) AS n FROM clicks GROUP BY id EMIT WHEN WATERMARK PAST MAX(ts)", InvalidSql),
    ("SELECT name FROM people EMIT WHEN WATERMARK PAST id", InvalidSql),
    ("SELECT id FROM clicks EMIT WHEN WATERMARK PAST 7", InvalidSql),
    ("SELECT DISTINCT id FROM clicks EMIT WHEN WATERMARK PAST ts", Unsupported),
]


@pytest.mark.parametrize(("query", "error"), REFUSED, ids=[query for query, _ in REFUSED])
def test_a_policy_that_cannot_be_kept_is_refused_with_a_hint(query: str, error: type[RejoinderError]) -> None:
    with pytest.raises(error) as raised:
        flow(SOURCES, query)
    assert raised.value.detail and raised.value.hint


def test_the_column_to_declare_is_named() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM bare (id INT, ts TIMESTAMP)")
    with pytest.raises(InvalidSql) as raised:
        driver.sql(
            "CREATE VIEW v AS SELECT count(*) AS n FROM bare GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE) EMIT FINAL"
        )
    assert "`bare`.`ts`" in raised.value.fact and "WATERMARK ts" in str(raised.value.hint)


def test_a_view_that_does_not_wait_cannot_be_built_on_one_that_waits() -> None:
    driver = flow(SOURCES, f"{PER_WINDOW} EMIT FINAL")
    with pytest.raises(Unsupported, match="`v` has an EMIT clause"):
        driver.sql("CREATE VIEW w AS SELECT n FROM v")
    with pytest.raises(Unsupported):
        driver.sql("CREATE INDEX i ON v (n)")


def test_a_query_on_a_view_that_waits_sees_what_is_out() -> None:
    driver = flow(SOURCES, f"{PER_WINDOW} EMIT FINAL")
    driver.insert("clicks", {"id": 1, "ts": at(1)}, {"id": 2, "ts": at(9)})
    driver.step()
    assert driver.sql("SELECT n + 1 AS more FROM v") == [{"more": 2}]
    assert driver.sql("SELECT * FROM v") == [{"s": at(0), "n": 1}]
