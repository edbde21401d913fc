"""Complete or refused: what a new view or a query answers depends on the rows delivered, not on other views."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rejoinder import errors
from rejoinder.testing import Driver

COLUMNS = "(k INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)"
TOPIC = "USING kafka OPTIONS (topic 'x', format 'json', `kafka.bootstrap.servers` 'h:1')"
PAIRS = (
    "CREATE VIEW pairs AS SELECT a.k, a.ts, b.ts AS t2 FROM s a JOIN s b "
    "ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 10 MINUTES"
)
DAILY = "SELECT TUMBLE(ts, INTERVAL 1 DAY).start AS day, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL 1 DAY)"
START = datetime(2026, 1, 1)


def rows(day: int, count: int = 100) -> list[dict[str, Any]]:
    return [{"k": at % 5, "ts": START + timedelta(days=day, minutes=at)} for at in range(count)]


def feed(driver: Driver, days: int = 3) -> None:
    for day in range(days):
        driver.insert("s", *rows(day))
        driver.step()


def counts(answer: list[dict[str, Any]]) -> list[int]:
    return [row["n"] for row in sorted(answer, key=lambda row: row["day"])]


def bounded(parallelism: int = 1, more: str = "") -> Driver:
    """A flow on a source that cannot be read again, and that only a view with bounded state reads."""
    driver = Driver(parallelism=parallelism)
    driver.sql(f"CREATE STREAM s {COLUMNS} {TOPIC} {more}")
    driver.sql(PAIRS)
    return driver


@pytest.mark.parametrize("parallelism", [1, 7])
def test_an_unrelated_view_changes_no_answer(parallelism: int) -> None:
    driver = Driver(parallelism=parallelism)
    driver.sql(f"CREATE STREAM s {COLUMNS}; CREATE TABLE t (k INT, name STRING, PRIMARY KEY (k));")
    driver.sql("CREATE VIEW kept AS SELECT s.k, ts, name FROM s LEFT JOIN t ON s.k = t.k")
    driver.sql(PAIRS)
    feed(driver)
    assert counts(driver.sql(DAILY)) == [100, 100, 100]
    assert driver.sql(f"SELECT sum(n) AS n FROM ({DAILY})") == [{"n": 300}]
    driver.sql(f"CREATE VIEW daily AS {DAILY}")
    assert counts(driver.table("daily")) == [100, 100, 100] and not driver.late("daily")
    driver.sql("DROP VIEW kept")
    driver.restart()
    assert counts(driver.sql(DAILY)) == [100, 100, 100], "the changes of a source in memory are kept"
    driver.sql("DROP VIEW daily; DROP VIEW pairs")
    assert counts(driver.sql(DAILY)) == [100, 100, 100]


@pytest.mark.parametrize("parallelism", [1, 7])
def test_a_new_join_meets_rows_that_have_expired_for_an_old_one(parallelism: int) -> None:
    driver = Driver(parallelism=parallelism)
    driver.sql(f"CREATE STREAM s {COLUMNS}")
    driver.sql(PAIRS)
    feed(driver)
    driver.sql(PAIRS.replace("pairs", "again"))
    driver.sql(PAIRS.replace("pairs", "longer").replace("10 MINUTES", "30 MINUTES"))
    assert sorted(map(str, driver.table("again"))) == sorted(map(str, driver.table("pairs")))
    assert len(driver.table("longer")) == 3 * sum(min(6, (99 - at) // 5) for at in range(100))
    driver.insert("s", {"k": 4, "ts": START + timedelta(days=2, minutes=101)})
    changed = driver.step()
    assert len(changed["pairs"]) == len(changed["again"]) == 2 and len(changed["longer"]) == 6


def test_a_new_view_counts_late_rows_and_leaves_an_old_one_alone() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s {COLUMNS}; CREATE VIEW before AS {DAILY};")
    feed(driver, 1)
    driver.insert("s", {"k": 1, "ts": START}, {"k": 1, "ts": START + timedelta(hours=2)})
    driver.step()
    driver.sql(f"CREATE VIEW after AS {DAILY}")
    assert (counts(driver.table("before")), counts(driver.table("after"))) == ([101], [102])
    assert len(driver.late("before")) == 1 and not driver.late("after")
    driver.insert("s", {"k": 1, "ts": START + timedelta(minutes=1)}, {"k": 1, "ts": START + timedelta(hours=3)})
    changed = driver.step()
    assert [[row["n"] for row, _ in changed[name]] for name in ("before", "after")] == [[101, 102], [102, 103]]
    driver.restart(parallelism=3)
    driver.insert("s", {"k": 1, "ts": START + timedelta(hours=4)})
    driver.step()
    assert (counts(driver.table("before")), counts(driver.table("after"))) == ([103], [104])


@pytest.mark.parametrize("ask", [DAILY, f"SELECT sum(n) AS n FROM ({DAILY})", f"CREATE VIEW daily AS {DAILY}"])
def test_what_nothing_holds_is_refused(ask: str) -> None:
    driver = bounded()
    feed(driver)
    with pytest.raises(errors.Incomplete) as refused:
        driver.sql(ask)
    assert "needs rows of `s` that are no longer kept" in refused.value.fact
    detail, hint = str(refused.value.detail), str(refused.value.hint)
    assert "rows with `ts` below 2026-01-03 01:28:00 have expired" in detail
    assert "since epoch 0" in detail and "`pairs`" in detail and "UTC" in detail
    assert "STARTING AT TIMESTAMP '2026-01-03 01:28:00'" in hint and "RETAIN ALL" in hint
    assert [view["view"] for view in driver.sql("SHOW VIEWS")] == ["pairs"], "nothing was defined"


def test_streams_and_snapshots_of_the_past_are_refused_alike() -> None:
    driver = bounded()
    feed(driver)
    for rendering in ("STREAM", "TVR"):
        with pytest.raises(errors.Incomplete, match="the query needs rows of `s`"):
            driver.sql(f"SELECT {rendering} k FROM s")


def test_before_a_row_has_expired_any_view_can_be_created() -> None:
    driver = bounded()
    driver.sql(f"CREATE VIEW daily AS {DAILY}")
    driver.sql("DROP VIEW daily")
    assert driver.sql(DAILY) == []


def test_a_view_starts_now() -> None:
    driver = bounded()
    feed(driver)
    driver.sql(f"CREATE VIEW daily STARTING AT NOW AS {DAILY}")
    assert driver.table("daily") == []
    driver.sql("CREATE VIEW total AS SELECT sum(n) AS n FROM daily")
    driver.insert("s", *({"k": at, "ts": START + timedelta(days=2, hours=2, minutes=at)} for at in range(7)))
    driver.step()
    driver.restart(parallelism=3)
    assert counts(driver.table("daily")) == [7] and driver.table("total") == [{"n": 7}]
    shown = {view["view"]: view["starts_at"] for view in driver.sql("SHOW VIEWS")}
    assert shown == {"pairs": {}, "daily": {"s": "epoch 3"}, "total": {"s": "epoch 3"}}
    assert "rows of s from epoch 3 on that are not late" in driver.sql("EXPLAIN daily")
    assert driver.sql("SELECT sum(n) AS n FROM daily") == [{"n": 7}]


def test_a_view_starts_at_an_event_time_from_which_all_rows_are_kept() -> None:
    driver = bounded()
    feed(driver)
    with pytest.raises(errors.Incomplete):
        driver.sql(f"CREATE VIEW daily STARTING AT TIMESTAMP '2026-01-03 01:00:00' AS {DAILY}")
    driver.sql(f"CREATE VIEW daily STARTING AT TIMESTAMP '2026-01-03 01:30:00' AS {DAILY}")
    assert counts(driver.table("daily")) == [10]
    assert "rows of s since 2026-01-03 01:30:00" in driver.sql("EXPLAIN daily")
    driver.insert("s", {"k": 1, "ts": START + timedelta(days=2, minutes=98)}, {"k": 1, "ts": START + timedelta(days=3)})
    driver.step()
    assert counts(driver.table("daily")) == [11, 1]


def test_a_start_does_not_cut_complete_sources() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s {COLUMNS}; CREATE VIEW copy AS SELECT * FROM s")
    feed(driver)
    driver.sql(f"CREATE VIEW daily STARTING AT NOW AS {DAILY}")
    assert counts(driver.table("daily")) == [100, 100, 100]
    assert driver.sql("SHOW VIEWS")[-1]["starts_at"] == {}


@pytest.mark.parametrize(
    ("start", "error", "text"),
    [
        ("EPOCH 1", errors.Incomplete, "view `daily` cannot start at epoch 1 of `s`"),
        ("EPOCH 9", errors.NotCommitted, "epoch 9, which is not committed yet"),
        ("yesterday", errors.InvalidSql, "is not a start"),
        ("", errors.InvalidSql, "STARTING AT has no start"),
    ],
)
def test_a_start_that_cannot_be(start: str, error: type[Exception], text: str) -> None:
    driver = bounded()
    feed(driver)
    for clauses in (f"STARTING AT {start} AS {DAILY}", f"AS {DAILY} STARTING AT {start}"):
        with pytest.raises(error, match=text):
            driver.sql(f"CREATE VIEW daily {clauses}")


def test_the_earliest_epoch_to_start_at_is_named() -> None:
    driver = bounded()
    feed(driver)
    driver.step()
    for ask, who in ((f"CREATE VIEW daily AS {DAILY}", "view `daily`"), (DAILY, "the query")):
        with pytest.raises(errors.Incomplete) as refused:
            driver.sql(f"{ask} STARTING AT EPOCH 2")
        assert refused.value.fact == f"{who} cannot start at epoch 2 of `s`"
        assert "delivered rows up to epoch 2" in str(refused.value.detail)
        assert "STARTING AT EPOCH 3, or at an event time: STARTING AT TIMESTAMP '2026-01-03 01:28:00'" in str(
            refused.value.hint
        )
    driver.sql(f"CREATE VIEW daily AS {DAILY} STARTING AT EPOCH 3")


@pytest.mark.parametrize("rendering", ["", "TABLE ", "STREAM ", "TVR "])
def test_a_query_starts_at_an_event_time_and_says_so(rendering: str) -> None:
    driver = bounded()
    feed(driver)
    query = DAILY.replace("SELECT", f"SELECT {rendering}", 1)
    with pytest.raises(errors.Incomplete) as refused:
        driver.sql(query)
    assert "SELECT … STARTING AT TIMESTAMP '2026-01-03 01:28:00'" in str(refused.value.hint)
    assert "CREATE VIEW" not in str(refused.value.hint)
    with pytest.warns(UserWarning, match="not complete: `s` begins at 2026-01-03 01:30:00"):
        found = driver.sql(f"{query} STARTING AT TIMESTAMP '2026-01-03 01:30:00'")
    rows = found[-1].rows if rendering == "TVR " else found
    assert [row["n"] for row in rows] == [10]
    with pytest.warns(UserWarning, match="`s` begins at epoch 3"):
        assert driver.sql("SELECT k FROM s STARTING AT NOW") == []
    with pytest.raises(errors.InvalidSql, match="STARTING AT has no start"):
        driver.sql("SELECT k FROM s STARTING AT")


def test_a_start_of_a_query_does_not_cut_complete_sources() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s {COLUMNS}; CREATE VIEW copy AS SELECT * FROM s")
    feed(driver, 1)
    assert len(driver.sql("SELECT k, ts FROM s ORDER BY ts STARTING AT NOW")) == 100


def test_a_replaced_view_is_filled_with_every_row(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path)
    driver.sql(f"CREATE STREAM s {COLUMNS}; {PAIRS}; CREATE OR REPLACE VIEW v AS SELECT k FROM s WHERE k = 1")
    feed(driver)
    driver.sql(f"CREATE OR REPLACE VIEW v AS {DAILY}")
    assert counts(driver.table("v")) == [100, 100, 100]
    driver.restart()
    driver.sql(f"CREATE OR REPLACE VIEW v AS {DAILY}")
    driver.insert("s", {"k": 1, "ts": START + timedelta(days=3)})
    driver.step()
    assert counts(driver.table("v")) == [100, 100, 100, 1]
    driver.sql("CREATE VIEW w AS SELECT sum(n) AS n FROM v")
    with pytest.raises(errors.DefinitionConflict, match="`w` does not fit the new definition of `v`"):
        driver.sql("CREATE OR REPLACE VIEW v AS SELECT k FROM s")
    assert counts(driver.table("v")) == [100, 100, 100, 1]


def test_a_replaced_view_that_cannot_be_filled_stays() -> None:
    driver = bounded()
    driver.sql("CREATE VIEW v AS SELECT k, ts FROM s WHERE ts > TIMESTAMP '2026-01-03'")
    driver.sql("DROP VIEW v")
    feed(driver)
    driver.sql(f"CREATE VIEW v STARTING AT NOW AS {DAILY}")
    with pytest.raises(errors.Incomplete, match="view `v` needs rows of `s`"):
        driver.sql("CREATE OR REPLACE VIEW v AS SELECT k FROM s")
    driver.insert("s", {"k": 1, "ts": START + timedelta(days=3)})
    driver.step()
    assert counts(driver.table("v")) == [1]


def test_an_epoch_after_which_nothing_was_delivered_is_now() -> None:
    driver = bounded()
    feed(driver)
    driver.step()
    driver.sql(f"CREATE VIEW daily STARTING AT EPOCH 3 AS {DAILY}")
    assert driver.table("daily") == []


@pytest.mark.parametrize("clause", ["RETAIN ALL", "OPTIONS (retain 'all')"])
def test_a_source_that_retains_all_fills_later_views(clause: str) -> None:
    driver = bounded(more=clause) if clause.startswith("RETAIN") else Driver()
    if not clause.startswith("RETAIN"):
        options = TOPIC.replace("topic 'x'", "topic 'x', retain 'all'")
        driver.sql(f"CREATE STREAM s {COLUMNS} {options}; {PAIRS}")
    feed(driver)
    driver.sql(f"CREATE VIEW daily AS {DAILY}")
    assert counts(driver.table("daily")) == counts(driver.sql(DAILY)) == [100, 100, 100]
    assert [source["retain"] for source in driver.sql("SHOW SOURCES")] == ["ALL"]


def test_a_source_is_retained_without_any_view() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s {COLUMNS} {TOPIC} RETAIN ALL")
    feed(driver)
    assert counts(driver.sql(DAILY)) == [100, 100, 100]


def test_a_source_that_retains_an_interval_fills_views_that_start_within_it() -> None:
    driver = bounded(more="RETAIN INTERVAL 1 DAY")
    feed(driver)
    driver.sql(f"CREATE VIEW daily STARTING AT TIMESTAMP '2026-01-02 01:39:00' AS {DAILY}")
    assert counts(driver.table("daily")) == [1, 100]
    with pytest.raises(errors.Incomplete, match="2026-01-02 01:38:00"):
        driver.sql(f"CREATE VIEW more STARTING AT TIMESTAMP '2026-01-02' AS {DAILY}")
    assert [source["retain"] for source in driver.sql("SHOW SOURCES")] == ["INTERVAL 1 DAY"]


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        ("CREATE STREAM u (k INT) RETAIN INTERVAL 1 DAY", "no watermark is declared"),
        ("CREATE STREAM u (k INT) RETAIN", "RETAIN of `u` has no length"),
        ("CREATE STREAM u (k BIGINT, WATERMARK k) RETAIN INTERVAL 1 DAY", "which is an integer"),
        ("CREATE TABLE u (k TIMESTAMP, PRIMARY KEY (k), WATERMARK k) RETAIN INTERVAL 1 DAY", "for a time only"),
    ],
)
def test_a_retention_that_cannot_be(clause: str, text: str) -> None:
    with pytest.raises(errors.InvalidSql, match=text):
        Driver().sql(clause)


def write(folder: Path, name: str, found: list[dict[str, Any]]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps({**row, "ts": str(row["ts"])}) + "\n" for row in found))
    return path


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], Driver]:
    """A flow on files that only a view with bounded state reads."""
    folder = tmp_path / "in"
    folder.mkdir()

    def make() -> Driver:
        driver = Driver(store=tmp_path / "state")
        driver.sql(f"CREATE STREAM s {COLUMNS} USING json OPTIONS (path '{folder}')")
        driver.sql(PAIRS)
        for day in range(3):
            write(folder, f"{day}.json", rows(day))
            driver.step()
        return driver

    return make


def test_files_are_read_again_up_to_the_committed_position(files: Callable[[], Driver], tmp_path: Path) -> None:
    driver = files()
    write(tmp_path / "in", "3.json", rows(3))  # nobody has read it yet
    assert counts(driver.sql(DAILY)) == [100, 100, 100]
    driver.sql(f"CREATE VIEW daily AS {DAILY}")
    assert counts(driver.table("daily")) == [100, 100, 100]
    driver.restart(parallelism=3)
    driver.step()
    assert counts(driver.table("daily")) == [100, 100, 100, 100], "no row is lost or doubled"


def test_a_file_that_was_deleted_is_named(files: Callable[[], Driver], tmp_path: Path) -> None:
    driver = files()
    (tmp_path / "in" / "1.json").unlink()
    with pytest.raises(errors.Incomplete, match=r"its file `.*1\.json` no longer exists"):
        driver.sql(f"CREATE VIEW daily AS {DAILY}")


def test_a_file_that_was_changed_is_named(files: Callable[[], Driver], tmp_path: Path) -> None:
    driver = files()
    path = write(tmp_path / "in", "1.json", rows(1, 5))
    later = path.stat().st_mtime + 60
    os.utime(path, (later, later))
    with pytest.raises(errors.Incomplete, match=r"its file `.*1\.json` was changed after it was read"):
        driver.sql(DAILY)


@pytest.mark.parametrize("change", ["shorter", "later by a nanosecond", "earlier"])
def test_a_file_that_was_rewritten_in_place_is_named(files: Callable[[], Driver], tmp_path: Path, change: str) -> None:
    """The length tells where the time was kept, and the time in nanoseconds where the length was."""
    driver = files()
    path = tmp_path / "in" / "1.json"
    before = path.stat()
    if change == "shorter":
        write(tmp_path / "in", "1.json", rows(1, 5))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        moved = before.st_mtime_ns + (1 if change.startswith("later") else -3_600_000_000_000)
        path.write_text(path.read_text().replace('"k": 1', '"k": 2'))
        os.utime(path, ns=(before.st_atime_ns, moved))
    driver.restart()
    with pytest.raises(errors.Incomplete, match=r"its file `.*1\.json` was changed after it was read"):
        driver.sql(DAILY)


def test_a_view_that_waits_starts_with_what_is_final_late_rows_included() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s {COLUMNS}; CREATE VIEW before AS {DAILY} EMIT FINAL")
    feed(driver, 2)
    driver.insert("s", {"k": 1, "ts": START}, {"k": 1, "ts": START + timedelta(days=1, minutes=5)})
    driver.step()
    driver.sql(f"CREATE VIEW after AS {DAILY} EMIT FINAL")
    assert (counts(driver.table("before")), counts(driver.table("after"))) == ([100], [101])
    driver.insert("s", {"k": 1, "ts": START + timedelta(days=3)})
    driver.step()
    assert (counts(driver.table("before")), counts(driver.table("after"))) == ([100, 100], [101, 101])


def test_a_changelog_starts_at_an_event_time_and_not_at_an_epoch() -> None:
    driver = Driver()
    options = TOPIC.replace("topic 'x'", "topic 'x', op 'op'")
    driver.sql(f"CREATE CHANGELOG s {COLUMNS} {options}; CREATE VIEW before AS {DAILY}")
    feed(driver, 2)
    with pytest.raises(errors.Incomplete, match="cannot start at an epoch"):
        driver.sql(f"CREATE VIEW after STARTING AT NOW AS {DAILY}")
    driver.sql(f"CREATE VIEW after STARTING AT TIMESTAMP '2026-01-02 01:38:00' AS {DAILY}")
    assert counts(driver.table("after")) == [2]
    driver.delete("s", rows(1)[-1])
    driver.step()
    assert counts(driver.table("after")) == [1]
