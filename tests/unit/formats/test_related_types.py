"""Types that hold the same kind of values: what a column may be cast from."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder.errors import SchemaChanged
from rejoinder.formats.conform import conform
from rejoinder.formats.related_types import is_related

PAIR = pa.struct([("n", pa.int64()), ("t", pa.string())])
TURNED = pa.struct([("t", pa.binary()), ("n", pa.int32())])
OTHER = pa.struct([("n", pa.int64()), ("u", pa.string())])
WIDER = pa.struct([("n", pa.int64()), ("t", pa.string()), ("u", pa.string())])


@pytest.mark.parametrize(
    ("found", "declared", "expected"),
    [
        (PAIR, TURNED, True),
        (PAIR, OTHER, False),
        (PAIR, WIDER, False),
        (WIDER, PAIR, False),
        (PAIR, pa.struct([("n", pa.string()), ("t", pa.string())]), False),
        (pa.list_(PAIR), pa.list_(TURNED), True),
        (pa.list_(PAIR), pa.list_(OTHER), False),
        (pa.list_(pa.int64()), pa.struct([("n", pa.int64())]), False),
        (pa.int64(), pa.list_(pa.int64()), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), True),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.int64(), pa.int64()), False),
    ],
)
def test_nested_types_correspond_by_name(found: pa.DataType, declared: pa.DataType, expected: bool) -> None:
    assert is_related(found, declared) is expected


@pytest.mark.parametrize(
    ("found", "declared", "expected"),
    [(PAIR, WIDER, True), (WIDER, PAIR, True), (pa.list_(PAIR), pa.list_(OTHER), True), (PAIR, pa.struct([]), False)],
)
def test_fields_that_may_be_missing(found: pa.DataType, declared: pa.DataType, expected: bool) -> None:
    assert is_related(found, declared, may_lack_fields=True) is expected


def test_a_field_of_another_name_is_not_read_as_null() -> None:
    table = pa.table({"x": pa.array([{"n": 1, "t": "a"}], PAIR)})
    with pytest.raises(SchemaChanged, match="does not fit its declared type"):
        conform(table, pa.schema([("x", OTHER)]), "the file", "s")
    turned = conform(table, pa.schema([("x", TURNED)]), "the file", "s")
    assert turned.to_pylist() == [{"x": {"t": b"a", "n": 1}}]
