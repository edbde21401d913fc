"""Folders of files as sources: every format and kind, and files that appear while the flow goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.errors import InputError
from rejoinder.testing import Driver
from tests.spark.conftest import OpenFlow
from tests.spark.files import FORMATS, write_rows
from tests.spark.rows import bag, view, wait_until


def create(flow: rj.Flow, what: str, format_: str, folder: Path, **options: str) -> None:
    """Create a source on a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    given = ", ".join(f"{key} '{value}'" for key, value in {"path": str(folder), **options}.items())
    flow.sql(f"CREATE {what} USING {format_} OPTIONS ({given})")


@pytest.mark.parametrize("format_", FORMATS)
def test_stream_takes_new_files_as_they_appear(flow: rj.Flow, tmp_path: Path, format_: str) -> None:
    folder = tmp_path / "in"
    create(flow, "STREAM s (id BIGINT, name STRING, price DOUBLE)", format_, folder)
    flow.sql("CREATE VIEW v AS SELECT id, name, price FROM s")
    assert flow.run() == [] and flow.epoch == -1
    expected = []
    for number in range(3):
        rows = [{"id": i, "name": None if i == 1 else f"n{i}", "price": i / 4} for i in range(number, number + 3)]
        expected += rows
        write_rows(folder / f"{number}.{format_}", rows)
        (progress,) = flow.run()
        assert (progress.epoch, progress.rows_in) == (number, {"s": 3})
        assert view(flow, "v") == bag(expected)
    assert flow.run() == []


@pytest.mark.parametrize("format_", FORMATS)
def test_table_upserts_and_tombstones(flow: rj.Flow, tmp_path: Path, format_: str) -> None:
    folder = tmp_path / "in"
    columns = "id BIGINT, name STRING, op STRING, PRIMARY KEY (id)"
    create(flow, f"TABLE t ({columns})", format_, folder, op="op")
    flow.sql("CREATE VIEW v AS SELECT id, name FROM t")

    def epoch(number: int, *rows: tuple[int, str | None, str]) -> set[tuple[Any, ...]]:
        write_rows(folder / f"{number}.{format_}", [{"id": i, "name": n, "op": op} for i, n, op in rows])
        flow.run()
        return {tuple(row.values()) for row in flow.arrow("v").to_pylist()}

    assert epoch(0, (1, "a", "c"), (2, "b", "r"), (3, "c", "I")) == {(1, "a"), (2, "b"), (3, "c")}
    assert epoch(1, (2, None, "d"), (1, "aa", "u"), (1, "aaa", "u")) == {(1, "aaa"), (3, "c")}
    assert epoch(2, (9, "x", "delete"), (3, "x", "delete"), (3, "y", "insert")) == {(1, "aaa"), (3, "y")}
    assert epoch(3, (4, "d", "+"), (4, "d", "-")) == {(1, "aaa"), (3, "y")}


def test_table_with_an_order_column(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "TABLE t (id BIGINT, at BIGINT, name STRING, PRIMARY KEY (id))", "parquet", folder, order="at")
    flow.sql("CREATE VIEW v AS SELECT id, name FROM t")
    write_rows(folder / "0.parquet", [{"id": 1, "at": 5, "name": "new"}, {"id": 1, "at": 3, "name": "old"}])
    flow.run()
    assert view(flow, "v") == bag([(1, "new")])
    write_rows(folder / "1.parquet", [{"id": 1, "at": 4, "name": "late"}, {"id": 2, "at": 1, "name": "other"}])
    flow.run()
    assert view(flow, "v") == bag([(1, "new"), (2, "other")])
    write_rows(folder / "2.parquet", [{"id": 1, "at": 5, "name": "equal"}])
    flow.run()
    assert view(flow, "v") == bag([(1, "equal"), (2, "other")]), "of two equals the one that came last wins"


def test_the_file_written_last_wins_inside_an_epoch(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "TABLE t (id BIGINT, name STRING, PRIMARY KEY (id))", "parquet", folder)
    flow.sql("CREATE VIEW v AS SELECT id, name FROM t")
    for number, name in enumerate(["first", "last", "middle"]):
        write_rows(folder / f"{number}.parquet", [{"id": i, "name": name} for i in range(50)])
        written = {"first": 1000, "middle": 2000, "last": 3000}[name]
        os.utime(folder / f"{number}.parquet", (written, written))
    assert len(flow.run()) == 1
    assert view(flow, "v") == bag([(i, "last") for i in range(50)])


@pytest.mark.parametrize("format_", FORMATS)
def test_changelog_by_op(flow: rj.Flow, tmp_path: Path, format_: str) -> None:
    folder = tmp_path / "in"
    create(flow, "CHANGELOG c (id BIGINT, name STRING, op STRING)", format_, folder, op="op")
    flow.sql("CREATE VIEW v AS SELECT id, name FROM c")
    write_rows(folder / f"0.{format_}", [{"id": 1, "name": "a", "op": "+"}] * 2 + [{"id": 2, "name": "b", "op": "c"}])
    flow.run()
    assert view(flow, "v") == bag([(1, "a"), (1, "a"), (2, "b")])
    write_rows(folder / f"1.{format_}", [{"id": 1, "name": "a", "op": "-"}, {"id": 2, "name": "b", "op": "d"}])
    flow.run()
    assert view(flow, "v") == bag([(1, "a")])


@pytest.mark.parametrize("format_", FORMATS)
def test_changelog_by_diff(flow: rj.Flow, tmp_path: Path, format_: str) -> None:
    folder = tmp_path / "in"
    create(flow, "CHANGELOG c (id BIGINT, diff BIGINT)", format_, folder, diff="diff")
    flow.sql("CREATE VIEW v AS SELECT id FROM c")
    write_rows(folder / f"0.{format_}", [{"id": 1, "diff": 3}, {"id": 2, "diff": 1}, {"id": 3, "diff": 0}])
    flow.run()
    assert view(flow, "v") == bag([(1,)] * 3 + [(2,)])
    write_rows(folder / f"1.{format_}", [{"id": 1, "diff": -2}, {"id": 2, "diff": -1}, {"id": 2, "diff": 1}])
    flow.run()
    assert view(flow, "v") == bag([(1,), (2,)])


def test_running_flow_takes_files_as_they_appear(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow, folder = open_flow(), tmp_path / "in"
    create(flow, "STREAM s (id BIGINT)", "parquet", folder)
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    flow.start()
    for number in range(3):
        write_rows(folder / f"{number}.parquet", [{"id": number}])
        wait_until(lambda number=number: view(flow, "v").total() == number + 1)  # type: ignore[misc]
    assert flow.is_running
    flow.stop()
    assert view(flow, "v") == bag([(0,), (1,), (2,)])


def test_files_per_epoch_are_limited_by_the_sources_own_option(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "STREAM s (id BIGINT)", "parquet", folder, maxFilesPerTrigger="2")
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    for number in range(5):
        write_rows(folder / f"{number}.parquet", [{"id": number}])
    assert [sum(progress.rows_in.values()) for progress in flow.run()] == [2, 2, 1]


def test_a_file_with_an_old_date_is_not_passed_over(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "STREAM s (id BIGINT)", "parquet", folder)
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    write_rows(folder / "new.parquet", [{"id": 1}])
    flow.run()
    write_rows(folder / "old.parquet", [{"id": 2}])
    os.utime(folder / "old.parquet", (86_400, 86_400))
    flow.run()
    assert view(flow, "v") == bag([(1,), (2,)])


@pytest.mark.parametrize("name", ["a b%20c#d/é", "a[b]", "a{b,c}", "a*"])
def test_odd_folders(flow: rj.Flow, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in" / name
    create(flow, "STREAM s (id BIGINT)", "parquet", folder)
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    for number, other in enumerate(["ab", "abc", "other"]):
        write_rows(tmp_path / "in" / other / "1 +%41.parquet", [{"id": -number}])
    write_rows(folder / "1 +%41.parquet", [{"id": 1}])
    flow.run()
    assert view(flow, "v") == bag([(1,)])


def test_folders_by_pattern(flow: rj.Flow, tmp_path: Path) -> None:
    for number, name in enumerate(["x1", "x2", "y1"]):
        write_rows(tmp_path / name / "1.parquet", [{"id": number}])
    flow.sql(f"CREATE STREAM s (id BIGINT) USING parquet OPTIONS (path '{tmp_path}/x*')")
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    flow.run()
    write_rows(tmp_path / "x3" / "1.parquet", [{"id": 3}])
    flow.run()
    assert view(flow, "v") == bag([(0,), (1,), (3,)])


@pytest.mark.parametrize("name", ["1.json", "a,b.json"])
def test_a_path_may_be_one_file(flow: rj.Flow, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"id": 1}\n')
    (tmp_path / "other.json").write_text('{"id": 2}\n')
    flow.sql(f"CREATE STREAM s (id INT) USING json OPTIONS (path '{tmp_path / name}')")
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    flow.run()
    flow.run()
    assert [row["id"] for row in flow.table("v").collect()] == [1]


def test_a_file_name_that_is_a_pattern_is_refused(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "STREAM s (id BIGINT)", "parquet", folder)
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    write_rows(folder / "a.parquet", [{"id": 1}])
    write_rows(folder / "?.parquet", [{"id": 2}])
    with pytest.raises(InputError, match="pattern"):
        flow.run()
    (folder / "?.parquet").rename(folder / "b.parquet")
    flow.run()
    assert view(flow, "v") == bag([(1,), (2,)])


def test_csv_with_header_and_other_separator(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "STREAM s (id BIGINT, name STRING)", "csv", folder, header="true", sep=";", nullValue="-")
    flow.sql("CREATE VIEW v AS SELECT id, name FROM s")
    (folder / "0.csv").write_text('name;ignored;id\n"a;b";1;1\n-;2;2\n')
    flow.run()
    assert view(flow, "v") == bag([(1, "a;b"), (2, None)])


def test_json_with_missing_and_unknown_fields(flow: rj.Flow, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    create(flow, "STREAM s (id BIGINT, place STRUCT<x: INT, y: STRING>, tags ARRAY<STRING>)", "json", folder)
    flow.sql("CREATE VIEW v AS SELECT id, place, tags FROM s")
    (folder / "0.json").write_text('{"id": 1, "place": {"x": 2}, "more": [1]}\n\n{"tags": ["a", null]}\n')
    flow.run()
    assert view(flow, "v") == bag([(1, {"x": 2, "y": None}, None), (None, None, ["a", None])])


def test_computed_columns_are_those_of_batch_spark(flow: rj.Flow, tmp_path: Path) -> None:
    """As Spark computes them over the same files, with a watermark on one, over two epochs."""
    columns = {"ts": "to_timestamp(text)", "label": "concat(item, '-', CAST(n AS STRING))", "half": "n / 2"}
    listed = ", ".join(f"{name} AS {text}" for name, text in columns.items())
    flow.sql(
        f"CREATE STREAM s (item STRING, n INT, text STRING, {listed}, WATERMARK ts DELAY OF INTERVAL 5 SECONDS) "
        f"USING json OPTIONS (path '{tmp_path}'); CREATE VIEW v AS SELECT * FROM s; "
        "CREATE VIEW minutes AS SELECT WINDOW_START(TUMBLE(ts, INTERVAL 1 MINUTE)) AS m, count(*) AS n FROM s "
        "GROUP BY TUMBLE(ts, INTERVAL 1 MINUTE) EMIT FINAL"
    )
    for epoch in range(2):
        lines = [f'{{"item": "i{at % 3}", "n": {at}, "text": "2026-01-31 10:0{epoch}:{at:02d}"}}' for at in range(40)]
        (tmp_path / f"{epoch}.json").write_text("\n".join([*lines, '{"item": "none"}']))
        flow.run()
    frame = flow.spark.read.schema("item STRING, n INT, text STRING").json(str(tmp_path))
    expected = frame.selectExpr("item", "n", "text", *(f"{text} AS {name}" for name, text in columns.items()))
    assert flow.table("v").columns == expected.columns
    assert sorted(map(repr, flow.table("v").collect())) == sorted(map(repr, expected.collect()))
    assert [row["n"] for row in flow.table("minutes").where("m IS NOT NULL").collect()] == [40]


def test_files_are_read_once_by_flow_and_test_driver_together(open_flow: OpenFlow, state: str, tmp_path: Path) -> None:
    """Both name a file as Spark's log does, so that either goes on where the other stopped."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number, name in enumerate(("a b%é+=.json", "1.json", "2.json")):
        write_rows(folder / name, [{"k": number}])
        opened = Driver(store=state, parallelism=2) if number != 1 else open_flow()
        if number == 0:
            opened.sql(f"CREATE STREAM s (k BIGINT) USING json OPTIONS (path '{folder}')")
            opened.sql("CREATE VIEW v AS SELECT k FROM s")
        if isinstance(opened, Driver):
            opened.step()
            assert sorted(row["k"] for row in opened.table("v")) == list(range(number + 1))
        else:
            opened.run()
            assert view(opened, "v") == bag([(0,), (1,)])
