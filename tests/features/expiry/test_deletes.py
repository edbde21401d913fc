"""Deletes of changelogs whose rows expire: a valid one never fails; one without a row makes no count negative."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rejoinder import errors
from rejoinder.testing import Driver
from tests.kit import NAMES, flow

COLUMNS = "(id INT, t BIGINT, WATERMARK t DELAY OF 0)"
TOPIC = "USING kafka OPTIONS (topic 'c', format 'json', `kafka.bootstrap.servers` 'h:1', op 'op')"
NEAR = "SELECT c.id, c.t, s.t AS u FROM c JOIN s ON c.id = s.id AND s.t BETWEEN c.t - 10 AND c.t + 10"
COPY = "SELECT id, t FROM c"


def changelog_flow(*views: str, source: str = f"CHANGELOG c {COLUMNS}", where: str = "") -> Driver:
    """A flow with views v, w, … over changelog `c` and stream `s`."""
    sources = f"CREATE {source} {where}; CREATE STREAM s {COLUMNS}; CREATE TABLE p (id INT, PRIMARY KEY (id))"
    return flow(sources, *views)


def row(identity: int, time: int) -> dict[str, Any]:
    return {"id": identity, "t": time}


def feed(driver: Driver, *times: int) -> None:
    """One epoch per time, with a row of each source."""
    for time in times:
        driver.insert("c", row(1, time))
        driver.insert("s", row(1, time))
        driver.step()


def test_a_valid_delete_is_not_refused_because_of_an_expired_row_of_its_key() -> None:
    driver = changelog_flow(NEAR, where=TOPIC)
    feed(driver, 10)
    driver.delete("c", row(1, 10))
    driver.insert("c", row(1, 50))
    driver.step()
    feed(driver, 50)  # the run with the row of time 10 expires, the one with its delete does not
    driver.delete("c", row(1, 50))
    assert driver.step()["v"] == [({"id": 1, "t": 50, "u": 50}, -1)]


@pytest.mark.parametrize("views", [(), (NEAR,), (COPY,), (NEAR, COPY)])
@pytest.mark.parametrize("where", ["", TOPIC])
def test_a_valid_delete_is_not_refused_because_its_row_is_no_longer_retained(
    views: tuple[str, ...], where: str
) -> None:
    driver = changelog_flow(*views, source=f"CHANGELOG c {COLUMNS} RETAIN 20", where=where)
    feed(driver, 10, 100, 200)
    driver.delete("c", row(1, 10))
    changes = driver.step()
    for name, query in zip(NAMES, views, strict=False):
        assert changes[name] == ([(row(1, 10), -1)] if query == COPY else [])


@pytest.mark.parametrize("retain", ["", "RETAIN 20"])
@pytest.mark.parametrize("where", ["", TOPIC])
@pytest.mark.parametrize("views", [(COPY,), (COPY, NEAR), (NEAR, COPY)])
def test_a_late_delete_without_a_row_is_refused_while_a_view_takes_every_row(
    views: tuple[str, ...], where: str, retain: str
) -> None:
    driver = changelog_flow(*views, source=f"CHANGELOG c {COLUMNS} {retain}", where=where)
    feed(driver, 10, 100, 200)
    driver.delete("c", row(7, 10))
    with pytest.raises(errors.MissingRow):
        driver.step()
    driver.delete("c", row(1, 10))
    driver.step()
    driver.delete("c", row(1, 10))
    with pytest.raises(errors.MissingRow):
        driver.step()


def test_late_deletes_are_not_checked_while_only_bounded_views_read_a_topic() -> None:
    driver = changelog_flow(NEAR, where=TOPIC)
    feed(driver, 10, 100, 200)
    driver.delete("c", row(7, 10), row(1, 10))
    assert driver.step()["v"] == []
    assert sorted((late["row"], late["undo"]) for late in driver.late("v")) == [
        ('{"id":1,"t":10}', True),
        ('{"id":7,"t":10}', True),
    ]
    driver.delete("c", row(7, 200))
    with pytest.raises(errors.MissingRow):
        driver.step()


def test_deletes_of_a_changelog_in_memory_are_all_checked() -> None:
    driver = changelog_flow(NEAR)
    feed(driver, 10, 100, 200)
    driver.delete("c", row(7, 10))
    with pytest.raises(errors.MissingRow):
        driver.step()


def test_deletes_within_the_retained_time_are_checked() -> None:
    driver = changelog_flow(NEAR, source=f"CHANGELOG c {COLUMNS} RETAIN 50", where=TOPIC)
    feed(driver, 10, 180, 200)
    driver.delete("c", row(7, 170))
    with pytest.raises(errors.MissingRow):
        driver.step()
    driver.delete("c", row(1, 180), row(7, 10))
    driver.step()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_view_that_reads_files_again_leaves_deletes_without_a_row_out(parallelism: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    driver = changelog_flow(NEAR, where=f"USING json OPTIONS (path '{tmp_path / 'in'}', op 'op')")
    driver.restart(parallelism=parallelism)
    records = [("I", row(1, 10)), ("I", row(2, 10)), ("I", row(1, 100)), ("D", row(7, 10)), ("D", row(2, 10))]
    for number, (op, record) in enumerate(records):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps({**record, "op": op}) + "\n")
        driver.step()
    wanted = [row(1, 10), row(1, 100)]
    assert driver.sql(COPY + " ORDER BY t") == wanted
    driver.sql(f"CREATE VIEW copy AS {COPY}; CREATE VIEW n AS SELECT count(*) AS n FROM c")
    assert sorted(driver.table("copy"), key=lambda each: each["t"]) == wanted
    assert driver.table("n") == [{"n": 2}]
    (tmp_path / "in" / "more.json").write_text(json.dumps({**row(7, 10), "op": "D"}) + "\n")
    with pytest.raises(errors.MissingRow):
        driver.step()


def test_rows_of_a_changelog_without_a_watermark_are_kept_for_their_deletes() -> None:
    driver = changelog_flow(
        f"{NEAR} EMIT WHEN WATERMARK PAST s.t", source="CHANGELOG c (id INT, t BIGINT)", where=TOPIC
    )
    feed(driver, 10, 100, 200)
    driver.delete("c", row(1, 10))
    assert driver.step()["v"] == [({"id": 1, "t": 10, "u": 10}, -1)]
    driver.delete("c", row(1, 10))
    with pytest.raises(errors.MissingRow):
        driver.step()


def test_a_join_at_arrival_does_not_keep_rows_for_their_deletes() -> None:
    arrival = NEAR.replace("FROM c JOIN s", "FROM s JOIN c FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS c")
    driver = changelog_flow(arrival, source="CHANGELOG c (id INT, t BIGINT)", where=TOPIC)
    feed(driver, *range(10, 400, 30))
    assert all(each["rows"] <= 3 for each in driver.arrangements() if each["relation"].startswith("c"))
    driver.delete("c", row(1, 10))
    assert driver.step()["v"] == []


def test_deletes_of_a_view_that_starts_at_a_time_are_checked() -> None:
    start = datetime(2026, 1, 1)
    driver = Driver()
    columns = "(id INT, t TIMESTAMP, WATERMARK t DELAY OF INTERVAL 0 SECONDS)"
    driver.sql(f"CREATE CHANGELOG c {columns} RETAIN INTERVAL 1 HOUR {TOPIC}")
    driver.sql("CREATE VIEW times AS SELECT t, count(*) AS n FROM c GROUP BY t")
    for hours in range(3):
        driver.insert("c", {"id": 1, "t": start + timedelta(hours=hours)})
        driver.step()
    driver.sql(f"CREATE VIEW copy STARTING AT TIMESTAMP '{start + timedelta(hours=1)}' AS {COPY}")
    driver.insert("c", {"id": 1, "t": start + timedelta(hours=9)})
    driver.step()
    driver.delete("c", {"id": 1, "t": start}, {"id": 1, "t": start + timedelta(hours=1)})
    assert driver.step()["copy"] == [({"id": 1, "t": start + timedelta(hours=1)}, -1)]
    driver.delete("c", {"id": 7, "t": start + timedelta(hours=1)})
    with pytest.raises(errors.MissingRow):
        driver.step()


@pytest.mark.parametrize("others", [(), (NEAR.replace("c.id, c.t", "c.id"),)])
def test_old_rows_of_a_table_are_replaced_and_deleted_whatever_their_time(others: tuple[str, ...]) -> None:
    driver = changelog_flow(
        NEAR, *others, source="TABLE c (id INT, t BIGINT, WATERMARK t DELAY OF 0, PRIMARY KEY (id))"
    )
    for identity, time in ((1, 10), (2, 10), (3, 300)):
        driver.insert("c", row(identity, time))
        driver.insert("s", row(identity, time))
        driver.step()
    driver.insert("c", row(1, 305))
    driver.delete("c", {"id": 2}, {"id": 7})
    assert driver.step()["v"] == [({**row(1, 10), "u": 10}, -1), ({**row(2, 10), "u": 10}, -1)]


@pytest.mark.parametrize("views", [(NEAR,), (NEAR, COPY)])
def test_debezium_deletes_and_updates_of_expired_rows(views: tuple[str, ...], tmp_path: Path) -> None:
    driver = changelog_flow(*views, where=f"USING json OPTIONS (path '{tmp_path}', envelope 'debezium')")
    events = [
        ("c", None, row(1, 10)),
        ("c", None, row(2, 10)),
        ("c", None, row(3, 300)),
        ("u", row(1, 10), row(1, 305)),
        ("d", row(2, 10), None),
    ]
    for number, (op, before, after) in enumerate(events):
        record = {"op": op, "before": before, "after": after}
        (tmp_path / f"{number}.json").write_text(json.dumps(record) + "\n")
        driver.step()
    if COPY in views:
        assert sorted(driver.table("w"), key=lambda each: each["id"]) == [row(1, 305), row(3, 300)]
    assert sorted(driver.sql(COPY), key=lambda each: each["id"]) == [row(1, 305), row(3, 300)]


@pytest.mark.parametrize("views", [("SELECT id, t FROM c",), ("SELECT count(*) AS n FROM c",)])
@pytest.mark.parametrize("where", ["", "USING kafka "])
def test_a_row_that_max_ahead_rejected_does_not_exist(views: tuple[str, ...], where: str) -> None:
    """Its delete is rejected as well while it is ahead of the clock; afterwards it is a delete without a row."""
    topic = "topic 'c', format 'json', `kafka.bootstrap.servers` 'h:1', op 'op', " if where else ""
    columns = "(id INT, t TIMESTAMP, WATERMARK t DELAY OF INTERVAL 0 SECONDS)"
    options = f"{where}OPTIONS ({topic}max_ahead 'INTERVAL 1 HOUR')"
    driver = changelog_flow(*views, source=f"CHANGELOG c {columns}", where=options)
    now, ahead = datetime(2026, 1, 1), {"id": 1, "t": datetime(2026, 1, 1, 5)}
    driver.insert("c", ahead, {"id": 2, "t": now})
    driver.step(at=now)
    before = driver.table("v")
    driver.delete("c", ahead)
    driver.step(at=now + timedelta(hours=1))
    assert driver.table("v") == before and len(driver.table("c.rejected")) == 2
    driver.delete("c", ahead)
    with pytest.raises(errors.MissingRow):
        driver.step(at=now + timedelta(hours=6))
    assert driver.table("v") == before
