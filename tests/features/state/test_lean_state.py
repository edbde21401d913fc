"""Lean arrangements: they have the columns that views read, and views that come later get all they need."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.errors import Incomplete, MissingRow, SchemaChanged
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.store.runs.run import read_run
from rejoinder.testing import Driver

ORDERS, COLUMNS = ("id",), ("line", "order_id", "part", "price", "note")
NARROW = "SELECT o.id, l.price FROM orders o JOIN lines l ON o.id = l.order_id"
WIDE = "SELECT o.id, l.price, l.note, l.part FROM orders o LEFT JOIN lines l ON o.id = l.order_id"
LINES = "(line BIGINT PRIMARY KEY, order_id BIGINT, part BIGINT, price BIGINT, note STRING)"


def rows(relation: str, *values: tuple[object, ...]) -> list[dict[str, object]]:
    names = ORDERS if relation == "orders" else COLUMNS
    return [dict(zip(names, row, strict=False)) for row in values]


def insert(driver: Driver, relation: str, *values: tuple[object, ...]) -> None:
    driver.insert(relation, *rows(relation, *values))


def delete(driver: Driver, relation: str, *values: tuple[object, ...]) -> None:
    driver.delete(relation, *rows(relation, *values))


def columns(driver: Driver, arrangement: str) -> set[str]:
    """The columns of all runs of an arrangement."""
    parts = driver._engine.version.state.arrangements[arrangement]
    tables = [read_run(driver._engine.store, ref) for part in parts for ref in part.refs]
    return {name for table in tables for name in table.column_names if not name.startswith("__")}


def is_lean(driver: Driver, arrangement: str) -> bool:
    (found,) = [a for a in driver._engine.dataflow.arrangements if a.id == arrangement]
    return found.is_lean


def of_table() -> Driver:
    driver = Driver()
    driver.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
    driver.sql(f"CREATE TABLE lines {LINES}")
    driver.sql(f"CREATE VIEW narrow AS {NARROW}")
    insert(driver, "orders", (1,), (2,), (3,))
    insert(driver, "lines", (10, 1, 7, 100, "a"), (11, 1, 8, 200, "b"), (12, None, 9, 300, "c"))
    driver.step()
    return driver


def check(driver: Driver, views: tuple[str, ...] = ("narrow",)) -> None:
    """Compare views with the same queries, computed now from complete relations."""
    for view in views:
        query = NARROW if view.startswith("narrow") else WIDE
        assert sorted(map(repr, driver.table(view))) == sorted(map(repr, driver.sql(query))), view


def test_a_secondary_arrangement_has_the_columns_that_views_read() -> None:
    driver = of_table()
    assert columns(driver, "lines[order_id]") == {"order_id", "price"}
    assert columns(driver, "lines[line]") == {"line", "order_id", "part", "price", "note"}
    assert (
        sum(ref.rows for part in driver._engine.version.state.arrangements["lines[order_id]"] for ref in part.refs) == 2
    )
    check(driver)


def test_a_later_view_widens_an_arrangement_and_its_drop_does_not_rewrite_it() -> None:
    driver = of_table()
    driver.sql(f"CREATE VIEW wide AS {WIDE}")
    assert columns(driver, "lines[order_id]") == {"order_id", "price", "note", "part"}
    check(driver, ("narrow", "wide"))
    insert(driver, "lines", (11, 2, 8, 201, "b"), (13, 3, 1, 5, "d"))
    driver.step()
    check(driver, ("narrow", "wide"))
    before = driver._engine.version.state.arrangements["lines[order_id]"]
    driver.sql("DROP VIEW wide")
    assert driver._engine.version.state.arrangements["lines[order_id]"] == before
    for number in range(40):  # enough runs for a compaction of wide and narrow runs
        insert(driver, "lines", (100 + number, 2, 1, number, "x"))
        delete(driver, "lines", (100 + number - 1,) if number else (10,))
        driver.step()
    check(driver)
    driver.sql(f"CREATE VIEW wide AS {WIDE}")
    check(driver, ("narrow", "wide"))


def test_equal_lean_rows_are_counted_apart() -> None:
    driver = of_table()
    insert(driver, "lines", (20, 1, 1, 100, "p"), (21, 1, 2, 100, "q"))
    driver.step()
    assert [row["price"] for row in driver.table("narrow")].count(100) == 3
    delete(driver, "lines", (20,))
    driver.step()
    assert [row["price"] for row in driver.table("narrow")].count(100) == 2
    check(driver)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_restart_goes_on_with_a_lean_state(tmp_path: Path, parallelism: int) -> None:
    driver = Driver(store=str(tmp_path / "s"))
    driver.sql("CREATE CHANGELOG orders (id BIGINT)")
    driver.sql("CREATE CHANGELOG lines (line BIGINT, order_id BIGINT, part BIGINT, price BIGINT, note STRING)")
    driver.sql(f"CREATE VIEW narrow AS {NARROW}")
    driver.sql("CREATE VIEW parts AS SELECT l.line, k.id FROM lines l JOIN orders k ON l.part = k.id")
    insert(driver, "orders", (1,), (7,))
    insert(driver, "lines", (10, 1, 7, 100, "a"), (11, None, None, 200, "b"))
    driver.step()
    driver.restart(parallelism=parallelism)
    delete(driver, "lines", (11, None, None, 200, "b"))
    insert(driver, "lines", (12, 7, 1, 300, None))
    driver.step()
    check(driver)
    driver.sql(f"CREATE VIEW wide AS {WIDE}")
    check(driver, ("narrow", "wide"))
    assert [is_lean(driver, name) for name in ("lines[order_id]", "lines[part]")].count(False) <= 1
    delete(driver, "lines", (10, 1, 7, 100, "a"))
    driver.step()
    check(driver, ("narrow", "wide"))


def write(folder: Path, number: int, **changes: pa.Array) -> None:
    folder.mkdir(exist_ok=True)
    rows = {
        "line": pa.array([number]),
        "order_id": pa.array([1]),
        "part": pa.array([number % 3]),
        "price": pa.array([10 * number]),
        "note": pa.array([f"n{number}"]),
    } | changes
    pq.write_table(
        pa.table({name: array for name, array in rows.items() if array is not None}), folder / f"{number}.parquet"
    )


def of_files(folder: Path) -> Driver:
    driver = Driver(store=str(folder / "s"))
    driver.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
    declared = LINES.replace(" PRIMARY KEY", "")
    driver.sql(f"CREATE STREAM lines {declared} USING parquet OPTIONS (path '{folder / 'lines'}')")
    driver.sql(f"CREATE VIEW narrow AS {NARROW}")
    insert(driver, "orders", (1,))
    for number in range(3):
        write(folder / "lines", number)
    driver.step()
    return driver


def test_a_stream_of_files_keeps_and_reads_the_columns_of_its_views(tmp_path: Path) -> None:
    driver = of_files(tmp_path)
    assert columns(driver, "lines[order_id]") == {"order_id", "price"}
    scan = driver._engine.dataflow.scans["lines"]
    assert isinstance(scan, SourceScan) and scan.columns is not None
    assert {"order_id", "price"} <= scan.columns and not {"note", "part", "line"} & scan.columns
    check(driver)
    driver.sql(f"CREATE VIEW wide AS {WIDE}")
    check(driver, ("narrow", "wide"))
    write(tmp_path / "lines", 5)
    driver.step()
    check(driver, ("narrow", "wide"))


def test_a_view_that_needs_columns_of_deleted_files_is_refused(tmp_path: Path) -> None:
    driver = of_files(tmp_path)
    (tmp_path / "lines" / "1.parquet").unlink()
    with pytest.raises(Incomplete, match="no longer kept"):
        driver.sql(f"CREATE VIEW wide AS {WIDE}")
    write(tmp_path / "lines", 7)
    driver.step()
    assert sorted(row["price"] for row in driver.table("narrow")) == [0, 10, 20, 70]


def test_columns_that_are_not_read_must_fit_their_declaration(tmp_path: Path) -> None:
    driver = of_files(tmp_path)
    write(tmp_path / "lines", 8, note=None)
    with pytest.raises(SchemaChanged, match="column `note` of `lines` is missing"):
        driver.step()
    write(tmp_path / "lines", 8, note=pa.array([[1]]))
    with pytest.raises(SchemaChanged, match="`note` of `lines` does not fit"):
        driver.step()
    write(tmp_path / "lines", 8)
    driver.step()
    check(driver)


@pytest.mark.parametrize("late", [(), (0,), (2500,), (1023, 1024, 2999)])
def test_late_rows_of_a_scan_with_few_columns_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: tuple[int, ...]
) -> None:
    """The file has three chunks; the whole records are read from the first one with a late row on."""
    monkeypatch.setattr("rejoinder.runtime.scan.CHUNK_ROWS", 1024)
    driver = Driver(store=str(tmp_path / "s"))
    declared = "(n BIGINT, ts TIMESTAMP, note STRING, WATERMARK ts DELAY OF INTERVAL 0 SECONDS)"
    (tmp_path / "events").mkdir()
    driver.sql(f"CREATE STREAM events {declared} USING parquet OPTIONS (path '{tmp_path / 'events'}')")
    driver.sql(
        "CREATE VIEW counts AS SELECT window_start, COUNT(*) AS c"
        " FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL 1 HOUR)) GROUP BY window_start, window_end"
    )
    scan = driver._engine.dataflow.scans["events"]
    assert isinstance(scan, SourceScan) and scan.columns is not None and "note" not in scan.columns
    for number, old in enumerate([(), late]):
        times = [(5 + number) * 3_600_000_000 if n not in old else 0 for n in range(3000)]
        table = {
            "n": range(3000),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "note": [f"n{n}" for n in range(3000)],
        }
        pq.write_table(pa.table(table), tmp_path / "events" / f"{number}.parquet")
        driver.step()
    assert [row["c"] for row in driver.table("counts")] == [3000, 3000 - len(late)]
    kept = [json.loads(row["row"]) for row in driver.table("counts.late")]
    assert sorted((row["n"], row["note"]) for row in kept) == [(n, f"n{n}") for n in late]


def test_another_arrangement_becomes_complete_when_the_complete_one_is_dropped() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG orders (id BIGINT)")
    driver.sql("CREATE CHANGELOG lines (line BIGINT, order_id BIGINT, part BIGINT, price BIGINT, note STRING)")
    driver.sql(f"CREATE VIEW narrow AS {NARROW}")
    driver.sql("CREATE VIEW parts AS SELECT l.line, k.id FROM lines l JOIN orders k ON l.part = k.id")
    insert(driver, "orders", (1,), (7,))
    insert(driver, "lines", (10, 1, 7, 100, "a"), (11, None, None, 200, "b"))
    driver.step()
    assert not is_lean(driver, "lines[order_id]") and is_lean(driver, "lines[part]")
    assert columns(driver, "lines[part]") == {"line", "part"}
    driver.sql("DROP VIEW narrow")
    assert columns(driver, "lines[part]") == set(COLUMNS)
    delete(driver, "lines", (11, None, None, 200, "b"))
    driver.step()
    delete(driver, "lines", (10, 1, 7, 100, "other"))
    with pytest.raises(MissingRow):
        driver.step()
