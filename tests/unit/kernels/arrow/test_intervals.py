"""Sweep: the same at every time, with the fewest intervals."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.kernels.arrow.columns import DIFF, HASH
from rejoinder.kernels.arrow.intervals import sweep

FOREVER = 9
Interval = tuple[str | None, int | None, int | None, int]
INTERVALS = st.lists(
    st.tuples(
        st.sampled_from([None, "p", "q"]),
        st.none() | st.integers(0, FOREVER),
        st.none() | st.integers(0, FOREVER),
        st.sampled_from([-2, -1, 1, 1, 2]),
    ),
    max_size=12,
)


def delta(rows: list[Interval], kind: pa.DataType | None = None) -> pa.Table:
    columns: dict[str, Any] = {"p": pa.array([row[0] for row in rows], pa.string())}
    for at, name in ((1, "start"), (2, "end")):
        columns[name] = pa.array([row[at] for row in rows], pa.int64()).cast(kind or pa.int64())
    return pa.table({**columns, DIFF: pa.array([row[3] for row in rows], pa.int64())})


def content(table: pa.Table) -> list[Interval]:
    return [tuple(row.values()) for row in table.to_pylist()]


def at_times(rows: list[Interval]) -> Counter[tuple[str | None, int]]:
    result: Counter[tuple[str | None, int]] = Counter()
    for payload, start, end, diff in rows:
        if start is not None and end is not None:
            for time in range(start, end):
                result[payload, time] += diff
    return Counter({at: count for at, count in result.items() if count})


def fewest(counts: Counter[tuple[str | None, int]]) -> int:
    """As many intervals as there are times at which another count than before begins."""
    return sum(1 for (payload, time), count in counts.items() if counts.get((payload, time - 1), 0) != count)


def check(rows: list[Interval]) -> None:
    swept = content(sweep(delta(rows), "start", "end"))
    assert at_times(swept) == at_times(rows)
    assert len(swept) == fewest(at_times(rows))


@settings(max_examples=150)
@given(rows=INTERVALS)
def test_it_says_the_same_with_the_fewest_intervals(rows: list[Interval]) -> None:
    check(rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=INTERVALS)
def test_collisions_cancel_nothing(weak_hash: None, rows: list[Interval]) -> None:
    check(rows)


def test_a_shorter_window_takes_back_its_tail_only() -> None:
    rows: list[Interval] = [("p", 1, FOREVER, -1), ("p", 1, 4, 1), ("q", 4, FOREVER, 1)]
    assert sorted(content(sweep(delta(rows), "start", "end"))) == [("p", 4, FOREVER, -1), ("q", 4, FOREVER, 1)]
    rows = [("p", 1, 4, -1), ("p", 1, 2, 1), ("p", 2, 4, 1)]
    assert content(sweep(delta(rows), "start", "end")) == []


def test_types_and_columns_stay() -> None:
    table = delta([("p", 1, 5, 1), ("p", 1, 3, -1)], pa.timestamp("us", tz="UTC")).drop_columns(["p"])
    table = table.append_column(HASH, pa.array([7, 7], pa.uint64()))
    swept = sweep(table, "start", "end")
    assert swept.schema == table.schema and swept.num_rows == 1
    assert swept["start"].cast(pa.int64()).to_pylist() == [3] and swept[HASH].to_pylist() == [7]


def test_a_delta_without_diffs_counts_once_each() -> None:
    table = delta([("p", 1, 3, 1), ("p", 2, 4, 1)]).drop_columns([DIFF])
    assert sorted(content(sweep(table, "start", "end"))) == [("p", 1, 2, 1), ("p", 2, 3, 2), ("p", 3, 4, 1)]
