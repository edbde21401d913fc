"""TUMBLE, HOP and IMPOSE_ORDER over relations, in FROM."""

from __future__ import annotations

from datetime import datetime

import pytest

from rejoinder.errors import PlanningError, Unsupported
from rejoinder.testing import Driver
from tests.kit import at, flow

SOURCES = (
    "CREATE STREAM orders (id BIGINT, ts TIMESTAMP); CREATE STREAM deliveries (id BIGINT, ts TIMESTAMP);"
    "CREATE TABLE people (id BIGINT, ts TIMESTAMP, PRIMARY KEY (id)); CREATE STREAM ticks (n BIGINT, name STRING)"
)
ORDER = "IMPOSE_ORDER(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND)"


def rows(driver: Driver, relation: str, *times: datetime) -> None:
    driver.insert(relation, *({"id": number, "ts": time} for number, time in enumerate(times)))


@pytest.mark.parametrize(
    "call",
    [
        "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
        "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' MINUTE))",
        "TABLE(TUMBLE(TABLE(orders), DESCRIPTOR(`ts`), INTERVAL 5 MINUTES))",
        "TUMBLE(orders, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
        "TUMBLE((SELECT id, ts FROM orders), DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
        "TUMBLE(TABLE (SELECT id, ts FROM orders), DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
        f"TUMBLE(TABLE {ORDER}, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
        f"TABLE(TUMBLE(TABLE({ORDER}), DESCRIPTOR(ts), INTERVAL 5 MINUTES))",
    ],
)
def test_tumble_adds_the_ends_of_a_window(call: str) -> None:
    driver = flow(
        SOURCES,
    )
    driver.sql(f"CREATE VIEW v AS SELECT w.id, window_start, w.window_end FROM {call} AS w")
    driver.sql(f"CREATE VIEW whole AS SELECT * FROM {call}")
    rows(driver, "orders", at(0), at(4, 59), at(5))
    driver.step()
    starts = [row["window_start"] for row in sorted(driver.table("v"), key=lambda row: row["id"])]
    assert starts == [at(0), at(0), at(5)]
    assert all((row["window_end"] - row["window_start"]).seconds == 300 for row in driver.table("v"))
    assert list(driver.table("whole")[0]) == ["id", "ts", "window_start", "window_end"]


def test_hop_repeats_rows_and_groups_close_at_their_end() -> None:
    driver = flow(SOURCES, parallelism=3)
    call = f"HOP(TABLE {ORDER}, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)"
    query = f"SELECT window_start, window_end, count(*) AS n FROM {call} GROUP BY window_start, window_end"
    driver.sql(f"CREATE VIEW now AS {query}; CREATE VIEW final AS {query} EMIT FINAL")
    driver.sql(f"CREATE VIEW past AS {query} EMIT WHEN WATERMARK PAST window_end")
    rows(driver, "orders", at(1), at(6))
    first = driver.step()
    assert sorted((row["window_end"], row["n"]) for row, _ in first["now"]) == [(at(5), 1), (at(10), 2), (at(15), 1)]
    assert [(row["window_end"], row["n"]) for row, _ in first["final"]] == [(at(5), 1)]
    rows(driver, "orders", at(10, 4))
    assert driver.step()["final"] == []
    rows(driver, "orders", at(10, 5))
    second = driver.step()
    assert [(row["window_end"], row["n"]) for row, _ in second["final"]] == [(at(10), 2)]
    assert second["past"] == second["final"], "the watermark has passed the window when it is at its end"


def test_columns_can_be_renamed_and_joined() -> None:
    driver = flow(
        SOURCES,
    )
    one, two = (f"TUMBLE(TABLE {name}, DESCRIPTOR(ts), INTERVAL 5 MINUTES)" for name in ("orders", "deliveries"))
    driver.sql(
        f"CREATE VIEW v AS SELECT a.i, b.id FROM {one} AS a(i, t, s, e)"
        f" JOIN {two} b ON a.i = b.id AND a.s = b.window_start"
    )
    rows(driver, "orders", at(0), at(5))
    rows(driver, "deliveries", at(1), at(1))
    assert driver.step()["v"] == [({"i": 0, "id": 0}, 1)]


def test_an_imposed_order_is_the_watermark_of_who_reads_it() -> None:
    """A view that imposes an order is the stream with that watermark; a view of the stream itself has every row."""
    driver = flow(SOURCES, parallelism=2)
    bounds = "d.ts BETWEEN o.ts AND o.ts + INTERVAL '1' MINUTE"
    driver.sql(
        f"CREATE VIEW o_ordered AS SELECT * FROM TABLE({ORDER});"
        "CREATE VIEW d_ordered AS SELECT * FROM IMPOSE_ORDER(TABLE deliveries, DESCRIPTOR(ts), INTERVAL '0' SECOND);"
        f"CREATE VIEW plain AS SELECT o.id FROM orders o JOIN deliveries d ON {bounds};"
        f"CREATE VIEW bounded AS SELECT o.id FROM o_ordered o JOIN d_ordered d ON {bounds};"
        f"CREATE VIEW pads AS SELECT o.id, d.id AS other FROM o_ordered o LEFT JOIN d_ordered d ON {bounds} EMIT FINAL"
    )
    shown = {row["column"]: row["delay"] for row in driver.sql("SHOW WATERMARKS") if row["source"] == "orders"}
    assert shown == {"ts": "5 seconds"}
    rows(driver, "orders", at(0))
    driver.step()
    rows(driver, "orders", at(10))
    rows(driver, "deliveries", at(10))
    driver.step()
    assert [row["id"] for row in driver.table("bounded")] == [0]
    assert driver.table("pads")[0] == {"id": 0, "other": None}
    rows(driver, "orders", at(9))
    rows(driver, "deliveries", at(9))
    driver.step()
    assert len(driver.late("bounded")) == 2 and len(driver.late("pads")) == 2
    assert (len(driver.table("plain")), len(driver.table("bounded"))) == (3, 1)
    kept = {row["relation"]: row["rows"] for row in driver.arrangements()}
    assert kept["orders"] == 3 and kept["orders#on-time"] == 1
    driver.restart(parallelism=3)
    rows(driver, "deliveries", at(10, 59))
    assert driver.step()["bounded"] == [({"id": 0}, 1)]


def test_a_self_join_may_order_one_side_alone() -> None:
    driver = flow(
        SOURCES,
    )
    driver.sql(
        f"CREATE VIEW v AS SELECT a.id FROM {ORDER} a JOIN orders b ON a.id = b.id AND b.ts >= a.ts - INTERVAL 1 MINUTE"
    )
    rows(driver, "orders", at(0))
    rows(driver, "orders", at(10))
    driver.step()
    rows(driver, "orders", at(0))
    assert len(driver.step()["v"]) == 1 and not driver.late("v"), "a view that must keep a side for ever takes all rows"


def test_who_imposes_the_same_shares_and_who_imposes_another_order_is_refused() -> None:
    driver = flow(
        SOURCES,
    )
    join = "SELECT o.id FROM {} o JOIN deliveries d ON o.id = d.id"
    driver.sql(f"CREATE VIEW one AS {join.format(ORDER)}")
    driver.sql(f"CREATE VIEW two AS {join.format(ORDER.replace('SECOND', 'SECONDS'))}")
    other = ORDER.replace("'5'", "'6'")
    with pytest.raises(PlanningError) as raised:
        driver.sql(f"CREATE VIEW three AS {join.format(other)}")
    assert raised.value.fact == "`three` imposes another order on `orders` than view `one` does"
    assert "5000000" in str(raised.value.detail) and "second STREAM" in str(raised.value.hint)
    driver.sql("DROP VIEW one; DROP VIEW two")
    driver.sql(f"CREATE VIEW three AS {join.format(other)}")
    driver.sql("CREATE STREAM declared (id BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 5 SECONDS)")
    same = ORDER.replace("orders", "declared")
    driver.sql(f"CREATE VIEW four AS SELECT * FROM {same}")
    with pytest.raises(PlanningError, match="than its WATERMARK does"):
        driver.sql(f"CREATE VIEW five AS SELECT * FROM {same.replace(chr(39) + '5', chr(39) + '4')}")


def test_an_order_of_numbers_and_of_two_columns() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM l (a BIGINT, b BIGINT); CREATE STREAM r (t BIGINT)")
    both = "IMPOSE_ORDER(TABLE IMPOSE_ORDER(TABLE l, DESCRIPTOR(a), 1), DESCRIPTOR(b), 2)"
    driver.sql(
        f"CREATE VIEW v AS SELECT x.a, y.t FROM (SELECT a, b FROM {both} WHERE a > 0) x"
        " JOIN IMPOSE_ORDER(TABLE r, DESCRIPTOR(t), 0) y ON x.b BETWEEN y.t - 1 AND y.t + 1"
    )
    assert {(row["column"], row["delay"]) for row in driver.sql("SHOW WATERMARKS")} == {
        ("a", "1"),
        ("b", "2"),
        ("t", "0"),
    }
    driver.insert("l", {"a": 10, "b": 10})
    driver.step()
    driver.insert("l", {"a": 8, "b": 20}, {"a": 11, "b": 20})
    driver.insert("r", {"t": 20})
    assert driver.step()["v"] == [({"a": 11, "t": 20}, 1)]
    assert [row["column"] for row in driver.late("v")] == ["a"]


@pytest.mark.parametrize(
    ("item", "fact"),
    [
        ("CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE)", "CUMULATE takes 4 arguments, not 3"),
        ("TUMBEL(orders, ts, 1)", "TUMBEL in FROM is not supported"),
        ("TUMBLE(TABLE orders, DESCRIPTOR(ts))", "TUMBLE takes 3 arguments, not 2"),
        ("HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE)", "HOP takes 4 arguments, not 3"),
        ("TUMBLE(1, DESCRIPTOR(ts), INTERVAL 1 MINUTE)", "the first argument of TUMBLE is a relation"),
        ("TUMBLE(TABLE orders, 'ts', INTERVAL 1 MINUTE)", "the second argument of TUMBLE names one column"),
        ("TUMBLE(TABLE orders, DESCRIPTOR(ts, id), INTERVAL 1 MINUTE)", "the second argument of TUMBLE names one"),
        ("TUMBLE(TABLE orders, DESCRIPTOR(tz), INTERVAL 1 MINUTE)", "there is no column `tz`"),
        ("TUMBLE(TABLE order, DESCRIPTOR(ts), INTERVAL 1 MINUTE)", "there is no relation `order`"),
        ("TUMBLE(TABLE orders, DESCRIPTOR(id), INTERVAL 1 MINUTE)", "a window of integers must be an integer"),
        ("TUMBLE(TABLE ticks, DESCRIPTOR(name), 5)", "a window is of a time"),
        ("TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MONTH)", "a window of months or years"),
        ("HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL 2 MINUTE, INTERVAL 1 MINUTE)", "would leave gaps"),
        ("IMPOSE_ORDER(TABLE orders, DESCRIPTOR(ts), INTERVAL '-1' SECOND)", "is not a length of time"),
        ("IMPOSE_ORDER(TABLE orders, DESCRIPTOR(ts), 5)", "IMPOSE_ORDER 5 is not a length of time"),
        ("IMPOSE_ORDER(TABLE ticks, DESCRIPTOR(n), INTERVAL 1 SECOND)", "does not fit column `n`"),
        ("IMPOSE_ORDER(TABLE ticks, DESCRIPTOR(name), 5)", "IMPOSE_ORDER on `name` of `ticks`, which is of type"),
        ("IMPOSE_ORDER(TABLE people, DESCRIPTOR(ts), INTERVAL 1 SECOND)", "`people`, which is not a stream"),
        ("IMPOSE_ORDER(lag => 5, input => TABLE(ticks))", "named arguments of IMPOSE_ORDER"),
        (
            "IMPOSE_ORDER(TABLE (SELECT ts + INTERVAL 1 DAY AS ts FROM orders), DESCRIPTOR(ts), INTERVAL 1 SECOND)",
            "not a plain column of one stream",
        ),
        (
            "IMPOSE_ORDER(TABLE (SELECT o.ts FROM orders o JOIN ticks ON o.id = n), DESCRIPTOR(ts), INTERVAL 1 SECOND)",
            "not a plain column of one stream",
        ),
    ],
)
def test_what_is_wrong_is_said(item: str, fact: str) -> None:
    driver = flow(
        SOURCES,
    )
    with pytest.raises(PlanningError) as raised:
        driver.sql(f"CREATE VIEW v AS SELECT 1 AS one FROM {item}")
    assert fact in str(raised.value), raised.value
    assert raised.value.hint


def test_side_outputs_and_indexed_views_have_no_order_to_impose() -> None:
    driver = flow(
        SOURCES,
    )
    driver.sql("""
        CREATE STREAM timed (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND);
        CREATE VIEW waiting AS SELECT id, ts FROM timed EMIT WHEN WATERMARK PAST ts;
        CREATE VIEW kept AS SELECT id, ts FROM orders; CREATE INDEX by_id ON kept (id)
    """)
    for name, column, lag, reason in (
        ("waiting.late", "behind", "5", "rows are stored in order of arrival"),
        ("kept", "ts", "INTERVAL 1 SECOND", "`kept` has an index, and is not inlined"),
    ):
        with pytest.raises(Unsupported, match=f"`{name}`, which is not a stream") as raised:
            driver.sql(f"CREATE VIEW v AS SELECT 1 AS one FROM IMPOSE_ORDER(TABLE {name}, DESCRIPTOR({column}), {lag})")
        assert reason in str(raised.value)
