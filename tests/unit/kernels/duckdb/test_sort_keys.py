"""Sort keys are in the state on disk: their bytes must stay what they are, and compare as the values do."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.ir.window_calls import SortColumn
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.plan.operations.ordered.row_order import row_sort_key


def keys(values: list[Any], kind: pa.DataType, order: SortColumn) -> list[bytes]:
    table = pa.table({"x": pa.array(values, kind)})
    result: list[bytes] = project(table, [("key", row_sort_key([order], table.schema))]).column("key").to_pylist()
    return result


@pytest.mark.parametrize(
    ("value", "kind", "ascending", "descending"),
    [
        (1, pa.int32(), "0280000001", "017ffffffe"),
        (-1, pa.int64(), "027fffffffffffffff", "018000000000000000"),
        (1.5, pa.float64(), "02bff8000000000000", "014007ffffffffffff"),
        (-0.0, pa.float64(), "028000000000000000", "017fffffffffffffff"),
        ("ab", pa.string(), "02626300", "019d9cff"),
        (date(2020, 1, 1), pa.date32(), "0280004756", "017fffb8a9"),
        (True, pa.bool_(), "0201", "01fe"),
        (None, pa.int32(), "01", "02"),
    ],
)
def test_the_bytes_of_a_key(value: Any, kind: pa.DataType, ascending: str, descending: str) -> None:
    assert keys([value], kind, SortColumn("x"))[0].hex() == ascending
    assert keys([value], kind, SortColumn("x", descending=True, nulls_first=False))[0].hex() == descending


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, -3, 0, 7], pa.int32()),
        ([None, float("-inf"), -1.5, 0.0, 2.5, float("inf"), float("nan")], pa.float64()),
        ([None, "", "a", "a\x00", "ab", "é"], pa.string()),
        ([None, Decimal("-1.50"), Decimal("0.00"), Decimal("12.25")], pa.decimal128(38, 2)),
        ([None, datetime(1960, 1, 1), datetime(2024, 5, 6, 7, 8, 9, 10)], pa.timestamp("us")),
        ([None, [], [1], [1, 2], [2]], pa.list_(pa.int32())),
    ],
)
def test_keys_compare_as_the_values_do(values: list[Any], kind: pa.DataType) -> None:
    ascending = keys(values, kind, SortColumn("x"))
    assert sorted(ascending) == ascending and len(set(ascending)) == len(values)
    descending = keys(values, kind, SortColumn("x", descending=True, nulls_first=False))
    assert sorted(descending, reverse=True) == descending
