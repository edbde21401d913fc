"""STREAM and TVR of queries: what they say is what a view would have said, had it been there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import InvalidSql, NotCommitted, UnknownName, Unsupported
from rejoinder.state.reading.renderings import Snapshot
from rejoinder.testing import Driver
from tests.kit import at


@pytest.fixture(params=[1, 3])
def driver(request: pytest.FixtureRequest) -> Driver:
    driver = Driver(parallelism=request.param)
    driver.sql(
        "CREATE STREAM orders (id INT, item STRING); CREATE TABLE prices (item STRING, price INT, PRIMARY KEY (item))"
    )
    driver.sql("CREATE VIEW priced AS SELECT id, item, price FROM orders LEFT JOIN prices USING (item)")
    driver.insert("orders", {"id": 1, "item": "tea"}, {"id": 2, "item": "tea"})
    driver.step(at=at(0))
    driver.insert("prices", {"item": "tea", "price": 3})
    driver.step(at=at(1))
    driver.step(at=at(2))
    driver.insert("prices", {"item": "tea", "price": 4}, {"item": "cup", "price": 9})
    driver.delete("prices", {"item": "cup"})
    driver.step(at=at(3))
    return driver


QUERY = "SELECT {} id, item, price FROM orders LEFT JOIN prices USING (item)"


def test_a_query_says_what_the_view_says(driver: Driver) -> None:
    assert driver.sql(QUERY.format("STREAM")) == driver.stream("priced")
    assert driver.sql(QUERY.format("TVR")) == driver.tvr("priced")
    assert driver.sql(QUERY.format("TABLE")) == driver.table("priced")


def test_a_query_on_a_view_is_played_from_its_changelog(driver: Driver) -> None:
    changes = driver.sql("SELECT STREAM price, COUNT(*) AS n FROM priced GROUP BY price")
    assert [(row["_epoch"], row["_undo"], row["price"], row["n"]) for row in changes] == [
        (0, False, None, 2),
        (1, True, None, 2),
        (1, False, 3, 2),
        (3, True, 3, 2),
        (3, False, 4, 2),
    ]


def test_a_source_has_a_history_too(driver: Driver) -> None:
    assert [(row["_emit_time"], row["_undo"], row["price"]) for row in driver.sql("SELECT STREAM * FROM prices")] == [
        (at(1), False, 3),
        (at(3), True, 3),
        (at(3), False, 4),
    ]
    driver.restart(parallelism=2)
    assert len(driver.sql("SELECT STREAM item FROM orders")) == 2


def test_system_items_stand_where_they_are_written(driver: Driver) -> None:
    rows = driver.sql("SELECT STREAM Sys.EmitTime AS Time, price, sys.undo FROM prices")
    assert rows.columns == ["Time", "price", "undo"]
    assert [tuple(row.values()) for row in rows] == [(at(1), 3, False), (at(3), 3, True), (at(3), 4, False)]
    counted = driver.sql("SELECT STREAM item, Sys.Epoch, COUNT(*) AS n FROM orders GROUP BY item")
    assert [tuple(row.values()) for row in counted] == [("tea", 0, 2)]


def test_a_source_may_have_columns_that_a_stream_adds() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM o (_undo INT); CREATE VIEW v AS SELECT _undo AS undo FROM o")
    driver.insert("o", {"_undo": 7})
    driver.step()
    assert driver.sql("SELECT _undo FROM o") == [{"_undo": 7}]
    assert driver.sql("SELECT STREAM _undo, Sys.Undo AS gone FROM o") == [{"_undo": 7, "gone": False}]
    for query in ("SELECT STREAM _undo FROM o", "SELECT STREAM * FROM o"):
        with pytest.raises(InvalidSql, match="column `_undo` in the result has a reserved name"):
            driver.sql(query)


def test_each_snapshot_is_ordered(driver: Driver) -> None:
    snapshots = driver.sql("SELECT TVR id FROM priced ORDER BY price, id DESC")
    assert snapshots.columns == ["id"]
    assert snapshots == [
        Snapshot(-1, None, at(0), []),
        Snapshot(0, at(0), None, [{"id": 2}, {"id": 1}]),
    ], "snapshots that differ in what is not selected are one"
    first = driver.sql("SELECT TVR price FROM priced ORDER BY price LIMIT 1")
    assert [(one.since, one.rows) for one in first] == [
        (None, []),
        (at(0), [{"price": None}]),
        (at(1), [{"price": 3}]),
        (at(3), [{"price": 4}]),
    ]


def test_a_table_is_ordered_by_what_it_does_not_show(driver: Driver) -> None:
    assert driver.sql("SELECT item FROM orders ORDER BY id DESC LIMIT 1") == [{"item": "tea"}]
    with pytest.raises(UnknownName, match="there is no column `nothing` to order by"):
        driver.sql("SELECT TABLE item FROM orders ORDER BY nothing")


def test_what_is_there_before_the_first_epoch_is_there_from_the_beginning(driver: Driver) -> None:
    counts = driver.sql("SELECT TVR COUNT(*) AS n FROM orders")
    assert [(one.since, one.until, one.rows) for one in counts] == [
        (None, at(0), [{"n": 0}]),
        (at(0), None, [{"n": 2}]),
    ]


def test_older_changes_are_one(tmp_path: Path) -> None:
    driver = Driver(history=2, store=tmp_path)
    driver.sql("CREATE CHANGELOG s (id INT)")
    for number in range(8):
        driver.insert("s", {"id": number})
        driver.step(at=at(number))
    with pytest.warns(UserWarning, match="history of `s` starts at epoch 5"):
        assert sum(not row["_undo"] for row in driver.sql("SELECT STREAM id FROM s WHERE id >= 0")) == 8
    with pytest.warns(UserWarning, match="history of `s` starts at epoch 5"):
        assert driver.sql("SELECT TVR id FROM s")[-1].rows == [{"id": number} for number in range(8)]


def test_a_source_without_a_history_is_taken_as_it_is_and_the_answer_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    driver = Driver()
    driver.sql(f"CREATE STREAM f (id INT) USING json OPTIONS (path '{folder}'); CREATE VIEW v AS SELECT id FROM f")
    for number in range(2):
        (folder / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        driver.step(at=at(number))
    assert [row["_epoch"] for row in driver.sql("SELECT STREAM * FROM v")] == [0, 1]
    with pytest.warns(UserWarning, match="the changes of `f` are not kept: its current content"):
        rows = driver.sql("SELECT STREAM id FROM f")
    assert [(row["id"], row["_epoch"]) for row in rows] == [(0, 0), (1, 0)]


def test_what_cannot_be_rendered_is_refused(driver: Driver) -> None:
    for query, error, fact in (
        ("SELECT STREAM id FROM orders ORDER BY id", Unsupported, "ORDER BY and LIMIT are not supported on a STREAM"),
        (
            "SELECT TABLE Sys.Undo FROM orders",
            InvalidSql,
            "`Sys.Undo` is a column of changes, and TABLE shows rows",
        ),
        ("SELECT STREAM id FROM nothing", UnknownName, "there is no relation `nothing`"),
        ("SELECT TVR id, id FROM orders", InvalidSql, "column `id` appears twice in the result"),
    ):
        with pytest.raises(error) as raised:
            driver.sql(query)
        assert raised.value.fact == fact
    with pytest.raises(NotCommitted):
        Driver().sql("SELECT STREAM 1 AS one FROM nothing")


def test_nothing_is_left_behind(driver: Driver) -> None:
    from rejoinder.store.objects import memory_objects

    before = set(memory_objects._stores), {entry.name for entry in driver._store.entries()}
    driver.sql(QUERY.format("STREAM"))
    assert (set(memory_objects._stores), {entry.name for entry in driver._store.entries()}) == before


def test_renderings_are_text(driver: Driver) -> None:
    assert str(driver.sql("SELECT STREAM price, Sys.Undo FROM prices")).splitlines() == [
        "price  Undo",
        "─────  ─────",
        "    3  false",
        "    3  true",
        "    4  false",
    ]
    assert str(driver.sql("SELECT TVR price FROM prices")).splitlines()[:8] == [
        "from the beginning to 2024-01-01 12:01:00",
        "(empty)",
        "",
        "from 2024-01-01 12:01:00 (epoch 1) to 2024-01-01 12:03:00",
        "price",
        "─────",
        "    3",
        "",
    ]


def test_changes_are_netted_over_a_period(driver: Driver) -> None:
    query = "id, price FROM orders LEFT JOIN prices USING (item)"
    rows = driver.sql(f"SELECT STREAM {query} EMIT EVERY INTERVAL 2 MINUTES")
    changes = [(row["_emit_time"], row["_undo"], row["price"]) for row in rows if row["id"] == 1]
    assert changes == [(at(0), False, None), (at(2), True, None), (at(2), False, 3)], (
        "an epoch on the tick lets out; what came at 12:01 does at 12:02, though no row came then; the rest waits"
    )
    ordered = driver.sql(f"SELECT TVR {query} ORDER BY id DESC EMIT EVERY INTERVAL 2 MINUTES")
    assert [row["id"] for row in ordered[-1].rows] == [2, 1]


def test_watermarks_of_the_past_are_not_kept(driver: Driver) -> None:
    driver.sql("CREATE STREAM timed (t TIMESTAMP, WATERMARK t)")
    with pytest.raises(Unsupported, match="EMIT WHEN WATERMARK is not supported here"):
        driver.sql("SELECT STREAM t FROM timed EMIT WHEN WATERMARK PAST t")
    driver.sql("CREATE VIEW late AS SELECT t FROM timed EMIT WHEN WATERMARK PAST t")
    driver.insert("timed", {"t": at(5)})
    driver.step(at=at(6))
    driver.watermark("timed", at(7))
    driver.step(at=at(7))
    rows = driver.sql("SELECT STREAM t, Sys.EmitTime FROM late WHERE t IS NOT NULL")
    assert [tuple(row.values()) for row in rows] == [(at(5), at(7))], "rows that a view emitted can be queried again"


def test_a_state_without_the_changes_of_a_table_gets_its_content(driver: Driver) -> None:
    engine = driver._engine
    engine.version.state.changelogs.pop("prices.changes")
    engine.define(engine.version.catalog)
    rows = driver.sql("SELECT STREAM item, price FROM prices")
    assert [(row["price"], row["_epoch"], row["_undo"]) for row in rows] == [(4, 3, False)]
    driver.insert("prices", {"item": "cup", "price": 7})
    driver.step(at=at(4))
    assert [row["_epoch"] for row in driver.sql("SELECT STREAM price FROM prices WHERE item = 'cup'")] == [4]


def test_versions_as_of_a_time_have_a_past() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM orders (id INT, at TIMESTAMP)")
    driver.sql("CREATE STREAM rates (rate INT, since TIMESTAMP, WATERMARK since DELAY OF INTERVAL 1 MINUTE)")
    driver.insert("orders", {"id": 1, "at": at(5)})
    driver.insert("rates", {"rate": 3, "since": at(0)})
    driver.step()
    driver.insert("rates", {"rate": 4, "since": at(5)}, {"rate": 5, "since": at(6)})
    driver.step()
    changes = driver.sql("SELECT STREAM id, rate FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON TRUE")
    assert [(row["rate"], row["_epoch"], row["_undo"]) for row in changes] == [
        (3, 0, False),
        (3, 1, True),
        (4, 1, False),
    ]
