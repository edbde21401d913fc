"""A query on a source that no view reads: it is read from its start, and nothing is kept of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rejoinder.testing import Driver


def _write(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _driver(tmp_path: Path, options: str = "") -> Driver:
    _write(tmp_path / "orders", "a.json", {"id": 1, "item": "tea"}, {"id": 2, "item": "mug"})
    driver = Driver(store=tmp_path / "state")
    path = tmp_path / "orders"
    driver.sql(f"CREATE STREAM orders (id INT, item STRING) USING json OPTIONS (path '{path}'{options})")
    return driver


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_query_reads_the_files_of_a_source_without_a_view(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    before = _files(tmp_path / "state")
    assert driver.sql("SELECT * FROM orders ORDER BY id") == [{"id": 1, "item": "tea"}, {"id": 2, "item": "mug"}]
    assert driver.sql("SELECT count(*) AS n FROM orders WHERE id > 1") == [{"n": 1}]
    assert driver.sql("WITH o AS (SELECT id FROM orders) SELECT a.id FROM o a JOIN o b ON a.id = b.id + 1") == [
        {"id": 2}
    ]
    _write(tmp_path / "orders", "b.json", {"id": 3, "item": "pot"})
    assert len(driver.sql("SELECT * FROM orders")) == 3, "as it is now"
    assert (driver.epoch, _files(tmp_path / "state")) == (-1, before), "nothing is left behind"


def test_all_files_are_read_however_few_an_epoch_takes_and_none_is_removed(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cleanSource"):
        driver = _driver(tmp_path, ", maxFilesPerTrigger '1', cleanSource 'delete'")
    _write(tmp_path / "orders", "b.json", {"id": 3, "item": "pot"})
    assert len(driver.sql("SELECT * FROM orders")) == 3
    assert _files(tmp_path / "orders") == {"a.json", "b.json"}


def test_other_relations_of_the_query_are_as_the_last_epoch_left_them(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    driver.sql(
        "CREATE TABLE prices (item STRING, price INT, PRIMARY KEY (item));"
        "CREATE VIEW dear (name) AS SELECT item FROM prices WHERE price > 2"
    )
    driver.insert("prices", {"item": "tea", "price": 3}, {"item": "mug", "price": 1})
    driver.step()
    driver.insert("prices", {"item": "mug", "price": 9})  # not committed
    rows = driver.sql("SELECT id, price FROM orders JOIN prices USING (item) ORDER BY id")
    assert rows == [{"id": 1, "price": 3}, {"id": 2, "price": 1}]
    assert driver.sql("SELECT id FROM orders JOIN dear ON item = name") == [{"id": 1}]


def test_a_view_that_comes_later_reads_the_source_as_if_it_had_not_been_queried(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    assert len(driver.sql("SELECT * FROM orders")) == 2
    driver.sql("CREATE VIEW v AS SELECT id FROM orders")
    assert [row["id"] for row, _ in driver.step()["v"]] == [1, 2]
    assert len(driver.sql("SELECT * FROM orders")) == 2, "from what the view keeps"


def test_rejected_lines_of_such_a_source_can_be_read(tmp_path: Path) -> None:
    driver = _driver(tmp_path, ", malformed 'divert'")
    (tmp_path / "orders" / "bad.json").write_text("{not json}\n")
    assert len(driver.sql("SELECT * FROM orders")) == 2
    assert len(driver.sql("SELECT * FROM orders.rejected")) == 1


def test_a_bad_file_fails_the_query_and_nothing_else(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    (tmp_path / "orders" / "bad.json").write_text("{not json}\n")
    with pytest.raises(Exception, match=r"\[RJ2"):
        driver.sql("SELECT * FROM orders")
    (tmp_path / "orders" / "bad.json").unlink()
    assert len(driver.sql("SELECT * FROM orders")) == 2


def test_rows_of_a_topic_wait_for_a_reader_and_queries_see_them() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM events (id INT) USING kafka OPTIONS (topic 'events', bootstrap 'localhost:9092')")
    driver.insert("events", {"id": 1})
    driver.step()
    assert driver.sql("SELECT * FROM events") == [{"id": 1}]
    driver.sql("CREATE VIEW v AS SELECT * FROM events")
    assert driver.step()["v"] == [({"id": 1}, 1)]


def test_changes_of_such_a_source_are_its_present_rows(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    with pytest.warns(UserWarning, match="current content"):
        rows = driver.sql("SELECT STREAM * FROM orders")
    assert [row["id"] for row in rows] == [1, 2]
