"""Scan: files become deltas; op and diff columns say what a record does, and files count in their order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.errors import InputError, MalformedInput, SchemaChanged
from rejoinder.formats.record_checks import DELETES, INSERTS
from rejoinder.testing import Driver
from tests.kit import flow


def write(folder: Path, name: str, *, at: int | None = None, **columns: Any) -> None:
    table = pa.table(columns)
    path = folder / f"{name}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    if at is not None:
        os.utime(path, (at, at))


def file_flow(folder: Path, declaration: str, options: str) -> Driver:
    return flow(
        f"CREATE {declaration} USING arrow OPTIONS (path '{folder}', {options})", "SELECT * FROM a", parallelism=2
    )


def content(driver: Driver) -> list[tuple[Any, ...]]:
    driver.step()
    return [tuple(row.values()) for row in driver.table("v")]


def test_a_diff_column_counts_copies(tmp_path: Path) -> None:
    driver = file_flow(tmp_path, "CHANGELOG a (k INT, d INT)", "diff 'd'")
    write(tmp_path, "1", k=pa.array([1, 2, 3], pa.int32()), d=[3, 1, 0])
    assert content(driver) == [(1,), (1,), (1,), (2,)]
    write(tmp_path, "2", d=[-2, -1, 2], k=pa.array([1, 2, 4], pa.int32()))
    assert content(driver) == [(1,), (4,), (4,)]
    assert content(driver) == [(1,), (4,), (4,)], "a file is read once"


@pytest.mark.parametrize("declared", ["k INT", "k INT, op STRING"])
def test_an_op_column_says_what_a_record_does(tmp_path: Path, declared: str) -> None:
    driver = file_flow(tmp_path, f"CHANGELOG a ({declared})", "op 'op'")
    words = [*sorted(INSERTS), *(word.upper() for word in sorted(INSERTS))]
    write(tmp_path, "1", k=pa.array([1] * len(words), pa.int32()), op=words)
    assert content(driver) == [(1,)] * len(words)
    write(tmp_path, "2", k=pa.array([1] * len(DELETES), pa.int32()), op=sorted(DELETES))
    assert content(driver) == [(1,)] * (len(words) - len(DELETES))


def test_files_of_a_table_count_in_their_order(tmp_path: Path) -> None:
    driver = file_flow(tmp_path, "TABLE a (k INT, s STRING, PRIMARY KEY (k))", "op 'op'")
    k = pa.array([1, 2], pa.int32())
    write(tmp_path, "b", at=1000, k=k, s=["older", "older"], op=["u", "u"])
    write(tmp_path, "a", at=2000, k=k, s=["newer", None], op=["u", "d"])
    assert content(driver) == [(1, "newer")]
    for name in "cdefgh":
        write(tmp_path, name, at=3000, k=k, s=[name, name], op=["u", "u"])
    assert content(driver) == [(1, "h"), (2, "h")], "files of one moment go by name"


@pytest.mark.parametrize(
    ("columns", "error", "fact"),
    [
        ({"k": [1], "op": ["x"]}, MalformedInput, "an op of `a` is unknown"),
        ({"k": [1], "op": pa.array([None], pa.string())}, MalformedInput, "NULL in the op column `op` of `a`"),
        ({"k": [1]}, SchemaChanged, "column `op` of `a` is missing in"),
        ({"op": ["i"]}, InputError, "column `k`"),
    ],
)
def test_records_that_do_not_say_what_they_do_are_refused(
    tmp_path: Path, columns: dict[str, Any], error: type[InputError], fact: str
) -> None:
    driver = file_flow(tmp_path, "CHANGELOG a (k BIGINT)", "op 'op'")
    write(tmp_path, "1", **columns)
    with pytest.raises(error) as raised:
        driver.step()
    assert fact in raised.value.fact and raised.value.detail and raised.value.hint
    assert str(tmp_path) in str(raised.value)
    (tmp_path / "1.arrow").unlink()
    write(tmp_path, "2", k=[5], op=["insert"])
    assert content(driver) == [(5,)]


@pytest.mark.parametrize(
    ("option", "marks", "fact"),
    [
        ("diff", [1.5], "the diff column `m` of `a` contains a value that is not of type int64"),
        ("diff", ["1"], "the diff column `m` of `a` has type string"),
        ("diff", [2**31], "the diff column `m` of `a` exceeds 2,147,483,647 copies"),
        ("diff", [-(2**63)], "the diff column `m` of `a` exceeds 2,147,483,647 copies"),
        ("op", [["i"]], "the op column `m` of `a` has type list"),
        ("op", [{"op": "i"}], "the op column `m` of `a` has type struct"),
        ("op", [b"\xff"], "the op column `m` of `a` contains a value that is not of type string"),
    ],
    ids=repr,
)
def test_op_and_diff_columns_of_other_types_are_refused(
    tmp_path: Path, option: str, marks: list[Any], fact: str
) -> None:
    driver = file_flow(tmp_path, "CHANGELOG a (k BIGINT)", f"{option} 'm'")
    write(tmp_path, "1", k=[1], m=marks)
    with pytest.raises(MalformedInput) as raised:
        driver.step()
    assert raised.value.fact.startswith(fact) and raised.value.detail and raised.value.hint
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize(
    ("option", "marks"),
    [
        ("op", ["I", "D"]),
        ("op", [1, -1]),
        ("op", pa.array(["i", "d"]).dictionary_encode()),
        ("op", pa.array([b"i", b"d"])),
        ("diff", [1.0, -1.0]),
        ("diff", pa.array([1, -1], pa.int8())),
    ],
    ids=lambda value: value if isinstance(value, str) else str(getattr(value, "type", value)),
)
def test_op_and_diff_columns_go_by_what_they_say(tmp_path: Path, option: str, marks: Any) -> None:
    driver = file_flow(tmp_path, "CHANGELOG a (k BIGINT)", f"{option} 'mark'")
    write(tmp_path, "1", k=[1, 2], Mark=[1, 1] if option == "diff" else ["i", "i"])
    driver.step()
    write(tmp_path, "2", k=[3, 2], MARK=marks)
    assert content(driver) == [(1,), (3,)]


def test_a_source_that_a_view_reads_for_the_first_time_is_read_from_its_start(tmp_path: Path) -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM a (k INT) USING arrow OPTIONS (path '{tmp_path}')")
    write(tmp_path, "1", k=pa.array([1], pa.int32()))
    driver.step()
    driver.sql("CREATE VIEW v AS SELECT k FROM a")
    assert content(driver) == [(1,)]
    driver.sql("DROP VIEW v; CREATE VIEW v AS SELECT k + 1 AS n FROM a")
    write(tmp_path, "2", k=pa.array([2], pa.int32()))
    assert content(driver) == [(2,), (3,)]
