"""What is noted of rows that came too late or could not be read: relations like others, in queries, views and sinks."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import DefinitionConflict, InvalidSql, UnknownName, Unsupported
from rejoinder.testing import Driver
from tests.kit import flow

SOURCE = "CREATE STREAM s (id INT, t BIGINT, WATERMARK t DELAY OF 0)"
WAITING = "CREATE VIEW v AS SELECT id FROM s EMIT WHEN WATERMARK PAST t"
EVERY_ROW = "CREATE VIEW z AS SELECT id FROM s"
NAMES = "CREATE TABLE names (id STRING, name STRING, PRIMARY KEY (id))"


def late_flow(*statements: str) -> Driver:
    """Rows 2, 3 and 4 are late by 10, 1 and 1; row 5 is on time."""
    driver = flow(SOURCE, NAMES, WAITING, EVERY_ROW, *statements)
    driver.insert("names", {"id": "s", "name": "shop"}, {"id": "t", "name": "till"})
    driver.insert("s", {"id": 1, "t": 10})
    driver.step()
    play(driver)
    return driver


def play(driver: Driver) -> None:
    driver.insert("s", {"id": 2, "t": 0}, {"id": 3, "t": 9})
    driver.step()
    driver.insert("s", {"id": 4, "t": 9}, {"id": 5, "t": 11})
    driver.step()


def folder(path: Path, *statements: str) -> Driver:
    """A stream of files with one line of three that cannot be read."""
    path.mkdir(exist_ok=True)
    (path / "1.json").write_text('{"id": 1}\n{"id": "x"}\n{"id": 3}\n')
    driver = Driver()
    driver.sql(f"CREATE STREAM f (id INT) USING json OPTIONS (path '{path}', malformed 'divert')")
    for statement in statements:
        driver.sql(statement)
    return driver


def rows(answer: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in answer)


def test_late_rows_can_be_queried_as_any_relation() -> None:
    driver = late_flow()
    far = "SELECT row, behind FROM v.late WHERE behind > 5"
    assert rows(driver.sql(far), "row", "behind") == [('{"id":2,"t":0}', 10)]
    assert driver.sql("SELECT count(*) AS n, max(behind) AS most FROM v.late") == [{"n": 3, "most": 10}]
    assert rows(driver.sql("SELECT late.behind AS by, count(*) AS n FROM v.late GROUP BY late.behind"), "by", "n") == [
        (1, 2),
        (10, 1),
    ]
    joined = "SELECT n.name, l.behind FROM V.LATE l JOIN names n ON l.input = n.id WHERE l.behind > 5"
    assert driver.sql(joined) == [{"name": "shop", "behind": 10}]
    with_view = "SELECT v.id, l.behind FROM v JOIN v.late l ON l.behind = v.id"
    assert rows(driver.sql(with_view), "id", "behind") == [(1, 1), (1, 1)]


def test_late_rows_have_a_past() -> None:
    driver = late_flow()
    stream = driver.sql("SELECT STREAM row, behind FROM v.late WHERE behind < 5")
    assert rows(stream, "_epoch", "row") == [(1, '{"id":3,"t":9}'), (2, '{"id":4,"t":9}')]
    assert rows(driver.sql("SELECT STREAM * FROM v.late"), "_epoch", "behind") == [(1, 1), (1, 10), (2, 1)]
    counted = driver.sql("SELECT TVR count(*) AS n FROM v.late")
    assert [snapshot.rows for snapshot in counted] == [[{"n": 0}], [{"n": 2}], [{"n": 3}]]


VIEWS = (
    "CREATE VIEW far AS SELECT row FROM v.late WHERE behind > 5",
    "CREATE VIEW counted AS SELECT input, count(*) AS n FROM v.late GROUP BY input",
    "CREATE VIEW named AS SELECT n.name, l.row FROM v.late l JOIN names n ON l.input = n.id",
)


@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_views_of_late_rows_change_in_the_epoch_of_the_late_row(moment: str) -> None:
    driver = late_flow(*(VIEWS if moment == "before" else ()))
    if moment == "after":
        play(driver)
    if moment != "before":
        for statement in VIEWS:
            driver.sql(statement)
    if moment != "after":
        driver.insert("s", {"id": 2, "t": 0}, {"id": 3, "t": 10})
        changes = driver.step()
        assert changes["far"] == [({"row": '{"id":2,"t":0}'}, 1)]
        assert [(row["name"], diff) for row, diff in changes["named"]] == [("shop", 1), ("shop", 1)]
    driver.restart()
    for name, statement in (("far", VIEWS[0]), ("counted", VIEWS[1]), ("named", VIEWS[2])):
        query = statement.partition(" AS ")[2]
        assert sorted(map(str, driver.table(name))) == sorted(map(str, driver.sql(query))) != []


def test_late_rows_by_two_times_and_for_a_union_are_seen_by_a_view() -> None:
    driver = Driver()
    for name in ("a", "b"):
        driver.sql(f"CREATE STREAM {name} (id INT, t BIGINT, d DATE, WATERMARK t DELAY OF 0, WATERMARK d DELAY OF 0)")
    union = "SELECT id, t FROM a UNION ALL SELECT id, t FROM b"
    driver.sql(f"CREATE VIEW v AS SELECT id, t FROM ({union}) q EMIT WHEN WATERMARK PAST t")
    driver.sql("CREATE VIEW n AS SELECT input, `column`, count(*) AS n FROM v.late GROUP BY input, `column`")
    for name in ("a", "b"):
        driver.insert(name, {"id": 1, "t": 10, "d": date(2026, 1, 10)})
    driver.step()
    driver.insert("a", {"id": 2, "t": 5, "d": date(2026, 1, 11)}, {"id": 3, "t": 11, "d": date(2026, 1, 1)})
    driver.idle("b")
    driver.step()
    driver.insert("a", {"id": 4, "t": 20, "d": date(2026, 1, 20)})
    driver.step()
    driver.insert("b", {"id": 5, "t": 15, "d": date(2026, 1, 15)})  # on time for b, late for the union
    driver.step()
    assert rows(driver.table("n"), "input", "column", "n") == [("a", "d", 1), ("a", "t", 1), ("b", "t", 1)]
    assert rows(driver.late("v"), "input", "behind") == [("a", 5), ("a", 9), ("b", 5)]


def test_rejected_records_can_be_queried_and_viewed(tmp_path: Path) -> None:
    driver = folder(tmp_path / "f", "CREATE VIEW odd AS SELECT line, count(*) AS n FROM f.rejected GROUP BY line")
    assert driver.sql("SELECT count(*) AS n FROM f.rejected") == [{"n": 0}]
    driver.step()
    assert driver.table("odd") == [{"line": 2, "n": 1}]
    assert driver.sql("SELECT text FROM f.rejected WHERE line > 1") == [{"text": '{"id": "x"}'}]
    assert rows(driver.sql("SELECT STREAM line FROM f.rejected"), "_epoch", "line") == [(0, 2)]
    driver.sql("CREATE VIEW again AS SELECT text FROM f.rejected")
    assert driver.table("again") == [{"text": '{"id": "x"}'}]


def test_a_source_that_no_view_reads_is_read_for_its_rejected_records(tmp_path: Path) -> None:
    driver = folder(tmp_path / "f")
    assert driver.sql("SELECT count(*) AS n FROM f.rejected") == [{"n": 1}]
    assert [row["line"] for row in driver.sql("SELECT STREAM line FROM f.rejected")] == [2]


def test_sinks_take_late_rows_and_rejected_records(tmp_path: Path) -> None:
    delivered: list[tuple[int, list[Any]]] = []
    driver = late_flow(f"CREATE SINK late FROM v.late USING json OPTIONS (path '{tmp_path}/late')")
    driver.foreach_epoch("v.late", lambda epoch, changes: delivered.append((epoch, changes.to_pylist())))
    driver.insert("s", {"id": 6, "t": 1})
    driver.step()
    assert [(epoch, len(changes)) for epoch, changes in delivered] == [(2, 3), (3, 1)]
    written = "".join(path.read_text() for path in sorted((tmp_path / "late").rglob("*.json")))
    assert written.count('"behind":') == 4
    with pytest.raises(DefinitionConflict, match="`v` is read by sink `late`"):
        driver.sql("DROP VIEW v")
    reading = folder(tmp_path / "f", f"CREATE SINK odd FROM f.rejected USING json OPTIONS (path '{tmp_path}/odd')")
    reading.step()
    assert len(list((tmp_path / "odd").glob("epoch-*.json"))) == 1, "a sink is a reason to read the source"


def test_what_is_noted_goes_with_its_view() -> None:
    driver = late_flow("CREATE VIEW far AS SELECT row FROM v.late WHERE behind > 5")
    with pytest.raises(DefinitionConflict, match="`v` is read by view `far`"):
        driver.sql("DROP VIEW v")
    driver.sql("DROP VIEW far")
    driver.sql("DROP VIEW v")
    with pytest.raises(UnknownName, match="no relation `v`"):
        driver.sql("SELECT row FROM v.late")


MISSING = [
    ("z.late", "view `z` takes every row and has no late rows"),
    ("s.late", "`s` is a stream, and rows are late for views"),
    ("nobody.late", "there is no relation `nobody`"),
    ("v.rejected", "`v` is a view, and records are rejected by sources"),
    ("s.rejected", "`s` rejects no records"),
]


@pytest.mark.parametrize(("name", "fact"), MISSING, ids=[name for name, _ in MISSING])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {}",
        "SELECT count(*) AS n FROM {}",
        "SELECT STREAM * FROM {}",
        "SELECT STREAM count(*) AS n FROM {}",
        "SELECT TVR count(*) AS n FROM {}",
        "EXPLAIN SELECT count(*) AS n FROM {}",
        "CREATE VIEW x AS SELECT count(*) AS n FROM {}",
        "CREATE SINK x FROM {} USING console",
    ],
)
def test_what_is_not_recorded_is_named(statement: str, name: str, fact: str) -> None:
    driver = late_flow()
    with pytest.raises(UnknownName) as refusal:
        driver.sql(statement.format(name))
    assert fact in refusal.value.fact and refusal.value.hint, statement


def test_what_is_noted_is_read_and_not_defined() -> None:
    driver = late_flow()
    for statement in ("DROP STREAM `v.late`", "CREATE INDEX ON `v.late` (behind)"):
        with pytest.raises(UnknownName, match=r"no relation `v\.late`"):
            driver.sql(statement)
    with pytest.raises(UnknownName):
        driver.insert("v.late", {"input": "s"})
    with pytest.raises(InvalidSql):
        driver.sql("CREATE VIEW `x.late` AS SELECT id FROM s")
    for name in ("v.lat", "a.v.late"):
        with pytest.raises(Unsupported, match="not a plain name"):
            driver.sql(f"SELECT * FROM {name} WHERE behind > 1")


def test_notes_have_no_time_to_wait_for() -> None:
    driver = late_flow("CREATE VIEW netted AS SELECT input, behind FROM v.late EMIT EVERY INTERVAL 1 SECOND")
    assert len(driver.sql("SELECT STREAM count(*) AS n FROM v.late")) == 5
    with pytest.raises(InvalidSql, match=r"waits for a watermark of `v\.late`\.`behind`, which has no watermark"):
        driver.sql("CREATE VIEW x AS SELECT row FROM v.late EMIT WHEN WATERMARK PAST behind")
    with pytest.raises(Unsupported, match="kept forever"):
        driver.sql("CREATE VIEW x AS SELECT input, count(*) AS n FROM v.late GROUP BY input EMIT FINAL")
