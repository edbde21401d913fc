"""Order inside a key: sorted as SQL sorts, NULL first; every row within the bounds is found, once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.kernels.arrow import ordered
from rejoinder.kernels.arrow.byte_keys import ByteKeys
from rejoinder.kernels.arrow.columns import DIFF, HASH, hashes
from rejoinder.kernels.arrow.nearest import within
from rejoinder.kernels.arrow.ordered import (
    FEW_NEEDLES,
    GREATEST,
    LEAST,
    Bound,
    Ordered,
    Spans,
    as_column,
    bounds_of,
    cut,
    extent,
    last_value,
    order_by_hash_and_value,
    order_values,
    place,
    rows_at,
    sorted_by_hash_and_value,
)
from tests.unit.kernels.arrow.ordered_runs import KEYS, RUNS, TIMES, Row, run, searched

INTEGERS = st.none() | TIMES | st.integers(-5, 5)
KINDS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC")]


def rank(value: int | None) -> tuple[bool, int]:
    return value is not None, value or 0


@given(rows=st.lists(st.tuples(st.integers(0, 3), INTEGERS), max_size=40))
def test_rows_are_sorted_by_hash_and_value_and_otherwise_left_alone(rows: list[tuple[int, int | None]]) -> None:
    keys = np.array([key for key, _ in rows], np.uint64)
    order = order_by_hash_and_value(keys, pa.array([value for _, value in rows], pa.int64()))
    assert order.tolist() == sorted(range(len(rows)), key=lambda at: (rows[at][0], rank(rows[at][1])))


@pytest.mark.parametrize("spread", [1, 2**20, 2**61])
def test_many_rows_are_sorted(spread: int) -> None:
    generator = np.random.default_rng(7)
    keys = generator.integers(0, 300, 20_000).astype(np.uint64) << np.uint64(50)
    values = generator.integers(-spread, spread, 20_000)
    order = order_by_hash_and_value(keys, pa.array(values))
    assert order.tolist() == np.lexsort((values, keys)).tolist()


def test_a_sorted_table_is_not_copied() -> None:
    table = run([("a", 1, 1), ("b", None, 1), ("a", 2, 1), ("b", 0, 1)])
    again = sorted_by_hash_and_value(table, "t")
    assert again["t"].chunk(0).buffers()[1].address == table["t"].chunk(0).buffers()[1].address


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_of_every_kind_are_integers_without_a_copy(kind: pa.DataType) -> None:
    narrow = pa.int32() if kind.bit_width == 32 else pa.int64() if kind.bit_width == 64 else kind
    array = pa.array([9, 3, None, -4, 100], narrow).cast(kind)
    sliced = array[1:]
    assert order_values(sliced)[[0, 2, 3]].tolist() == [3, -4, 100]
    assert order_values(sliced).ctypes.data == array.buffers()[1].address + kind.bit_width // 8
    values, known = bounds_of(sliced)
    assert known is not None and as_column(values, kind, known).equals(sliced)
    assert bounds_of(array[3:])[1] is None and order_values(array[:0]).tolist() == []
    assert len(order_values(pa.nulls(0, kind))) == 0
    ends = order_values(as_column(np.array([LEAST, GREATEST]), kind)).tolist()
    assert ends == [-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1]
    last = as_column(np.array([last_value(kind)]), kind)[0].as_py()
    assert str(last)[:19] in ("9999-12-31", "9999-12-31 00:00:00", str(2 ** (kind.bit_width - 1) - 1))


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be ordered by string"):
        order_values(pa.array(["a"]))


Ask = tuple[str | None, int | None, int | None]


def check_within(runs: list[list[Row]], asks: list[Ask], *, low: bool, high: bool, strict: tuple[bool, bool]) -> None:
    tables = [run(rows) for rows in runs]
    found, order = searched(tables, [key for key, _, _ in asks])
    lows, highs = (bounds_of(pa.array([asks[at][side] for at in order], pa.int64())) for side in (1, 2))
    pairs = within(
        found,
        Bound(lows[0], strict[0], lows[1]) if low else None,
        Bound(highs[0], strict[1], highs[1]) if high else None,
    )
    for number, table in enumerate(tables):
        expected = []
        for at, (key, least, most) in enumerate(asks):
            for row, (there, time) in enumerate(zip(table["k"].to_pylist(), table["t"].to_pylist(), strict=True)):
                inside = key == there and time is not None
                if low:
                    inside = inside and least is not None and (time > least if strict[0] else time >= least)
                if high:
                    inside = inside and most is not None and (time < most if strict[1] else time <= most)
                if inside:
                    expected.append((at, row))
        left, right = pairs[number]
        assert sorted(zip(order[left].tolist(), right.tolist(), strict=True)) == sorted(expected)


SEARCH = {
    "runs": RUNS,
    "asks": st.lists(st.tuples(KEYS, st.none() | TIMES, st.none() | TIMES), max_size=10),
    "low": st.booleans(),
    "high": st.booleans(),
    "strict": st.tuples(st.booleans(), st.booleans()),
}


@settings(max_examples=150)
@given(**SEARCH)
def test_all_rows_within_the_bounds_are_found(**arguments: Any) -> None:
    check_within(**arguments)


@pytest.mark.parametrize("spread", [1, 10**6, 2**61])
@pytest.mark.parametrize("known", [True, False])
def test_many_needles_find_what_few_find(spread: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(11)
    names = [f"k{at}" for at in range(40)]

    def times(count: int) -> Any:
        return (generator.integers(-9, 9, count) * spread).tolist()

    def drawn(count: int) -> list[str]:
        return [names[at] for at in generator.integers(0, 40, count)]

    rows = [(key, time, 1) for key, time in zip(drawn(900), times(900), strict=True)]
    table = run(rows if known else [*rows, *((key, None, 1) for key in names[:9])])
    found, _ = searched([table], [*drawn(700), "unknown"])
    values = np.array([LEAST, GREATEST, *times(699)])
    for right in (False, True):
        few = cut(found.runs[0], found.met[0].low, found.met[0].high, values[found.met[0].who], right=right)
        with monkeypatch.context() as patch:
            patch.setattr(ordered, "cut", None if spread < 2**61 else cut)  # too wide to be packed
            many = place(found.runs[0], found.met[0], values[found.met[0].who], right=right)
        assert many.tolist() == few.tolist()


@given(st.lists(st.binary(max_size=10), max_size=30), st.lists(st.binary(max_size=10), min_size=1, max_size=5))
def test_few_keys_are_searched_one_by_one_as_many_are(stored: list[bytes], wanted: list[bytes]) -> None:
    table = pa.table({"key": pa.array(sorted(stored), pa.binary()), HASH: np.zeros(len(stored), np.uint64)})
    found = Ordered.of(table, "key")
    for right in (False, True):
        for copies in (1, FEW_NEEDLES):
            values = ByteKeys.of(pa.array(wanted * copies, pa.binary()))
            low = np.zeros(len(values), np.int64)
            result = cut(found, low, np.full(len(values), len(stored)), values, right=right)
            search = bisect_right if right else bisect_left
            assert result.tolist() == [search(sorted(stored), key) for key in wanted] * copies


def test_extremes_are_placed_by_many_needles() -> None:
    found, _ = searched([run([("a", LEAST, 1), ("a", 0, 1), ("a", GREATEST, 1)])], ["a"] * 100)
    values = np.array([LEAST, 0, GREATEST, 5] * 25)
    for right, places in ((False, [0, 1, 2, 2]), (True, [1, 2, 3, 2])):
        assert place(found.runs[0], found.met[0], values, right=right).tolist() == places * 25


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(values=st.lists(st.integers(0, 9), max_size=40), wanted=st.integers(-1, 10), later=st.booleans())
def test_the_extent_is_found_from_the_near_end(values: list[int], wanted: int, later: bool) -> None:
    table = run([("a", value, 1) for value in values])
    part = Spans(np.array([0]), np.array([0]), np.array([len(values)]))
    (found,) = extent(Ordered.of(table, "t"), part, np.array([wanted]), later=later).tolist()
    inside = sum(value <= wanted for value in values) if later else sum(value < wanted for value in values)
    assert found == inside


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**SEARCH)
def test_collisions_find_nothing(weak_hash: None, **arguments: Any) -> None:
    check_within(**arguments)


@pytest.mark.parametrize("kind", [pa.int16(), pa.date32(), pa.timestamp("us")], ids=str)
def test_narrow_columns_are_searched_with_wide_bounds(kind: pa.DataType) -> None:
    found, _ = searched([run([("a", time, 1) for time in (-7, -1, 0, 5, 9)], kind)], ["a"])
    ((_, right),) = within(found, Bound(np.array([-(2**40)])), Bound(np.array([2**40])))
    assert right.tolist() == [0, 1, 2, 3, 4]
    ((_, right),) = within(found, Bound(np.array([-1]), strict=True), Bound(np.array([9]), strict=True))
    assert right.tolist() == [2, 3]


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(KEYS, INTEGERS, st.just(1)), max_size=15), asks=st.lists(st.tuples(KEYS, INTEGERS)))
def test_rows_at_a_value_are_found_once_null_included(
    rows: list[Row], asks: list[tuple[str | None, int | None]]
) -> None:
    table = run(rows)
    wanted = run([(key, value, 1) for key, value in asks])
    values, known = bounds_of(wanted["t"])
    found = rows_at(hashes(wanted), Ordered.of(table, "t"), values, known)
    content = list(zip(table["k"].to_pylist(), table["t"].to_pylist(), strict=True))
    assert found.tolist() == [at for at, row in enumerate(content) if row in asks]


def test_few_rows_meet_many_needles() -> None:
    table = run([("a", 1, 1), ("b", 2, 1)])
    found, order = searched([table], [str(at) for at in range(50)] + ["b", "a", "b"])
    ((left, right),) = within(found, None, None)
    pairs = {(int(order[i]), table["k"][j].as_py()) for i, j in zip(left.tolist(), right.tolist(), strict=True)}
    assert pairs == {(50, "b"), (51, "a"), (52, "b")} and DIFF not in table.column_names
