"""Range and as-of lookups: the pairs that a plain loop finds, whatever the runs are cut into and take back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.ir.identities import ViewRows
from rejoinder.kernels.arrow.columns import diffs
from rejoinder.kernels.arrow.hashing import NULL_HASH
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.runtime.matching.range_matching import bound, match_nearest, match_range
from tests import deep
from tests.unit.runtime.steps.test_lookup import unmixed
from tests.unit.runtime.versions import KEYS, TIMESTAMP, Version, Versions, epochs

HARD = settings(max_examples=15 * deep.TIMES, suppress_health_check=[HealthCheck.function_scoped_fixture])
TIMES = st.none() | st.integers(-1, 6)
Ask = tuple[Any, int | None, int | None]


def asks(kind: pa.DataType) -> st.SearchStrategy[list[Ask]]:
    return st.lists(st.tuples(st.sampled_from(KEYS[kind]), TIMES, TIMES), max_size=8)


def filled(kind: pa.DataType, changes: list[list[Version]], buckets: int, *, null_safe: bool) -> Versions:
    versions = Versions(kind, null_safe=null_safe)
    versions.cut(buckets)
    for rows in changes:
        versions.epoch(rows)
    return versions


def times(stream: pa.Table, values: list[int | None]) -> pa.Array:
    """The values in the order of the stream's rows."""
    return pa.array([values[at] for at in stream["at"].to_pylist()], pa.int64()).cast(TIMESTAMP)


def meant(versions: Versions, stream: pa.Table, pairs: list[tuple[Any, Any]]) -> Counter[tuple[Any, ...]]:
    """What the pairs say: position of the ask, payload, time, and how often."""
    result: Counter[tuple[Any, ...]] = Counter()
    for run, (left, right) in zip(versions.runs, pairs, strict=True):
        found = run.take(pa.array(right))
        columns = (stream["at"].take(pa.array(left)), found["p"], found["t"].cast(pa.int64()))
        for *row, diff in zip(*(c.to_pylist() for c in columns), diffs(run)[right].tolist(), strict=True):
            result[tuple(row)] += diff
    return Counter({row: count for row, count in result.items() if count})


def expected(
    versions: Versions, asked: list[Ask], inside: Callable[[Ask, int, list[int]], bool]
) -> Counter[tuple[Any, ...]]:
    result: Counter[tuple[Any, ...]] = Counter()
    for at, ask in enumerate(asked):
        if ask[0] is None and not versions.arrangement.key.null_safe:
            continue
        live = [t for (k, _, t), count in versions.rows.items() if k == ask[0] and count and t is not None]
        for (key, payload, time), count in versions.rows.items():
            if key == ask[0] and count and time is not None and inside(ask, time, live):
                result[at, payload, time] += count
    return result


def check_range(versions: Versions, asked: list[Ask], strict: tuple[bool, bool], sides: tuple[bool, bool]) -> None:
    stream = versions.stream([key for key, _, _ in asked])
    low, high = (bound(times(stream, [ask[side] for ask in asked]), strict=strict[side - 1]) for side in (1, 2))
    pairs = match_range(
        stream,
        versions.runs,
        versions.key(),
        versions.arrangement,
        low=low if sides[0] else None,
        high=high if sides[1] else None,
    )

    def inside(ask: Ask, time: int, live: list[int]) -> bool:
        _, least, most = ask
        above = least is not None and (time > least or (time == least and not strict[0]))
        below = most is not None and (time < most or (time == most and not strict[1]))
        return (above or not sides[0]) and (below or not sides[1])

    assert meant(versions, stream, pairs) == expected(versions, asked, inside)


def check_nearest(versions: Versions, asked: list[Ask], *, strict: bool) -> None:
    stream = versions.stream([key for key, _, _ in asked])
    at = bound(times(stream, [time for _, time, _ in asked]), strict=strict)
    pairs = match_nearest(stream, versions.runs, versions.key(), versions.arrangement, at)

    def inside(ask: Ask, time: int, live: list[int]) -> bool:
        wanted = ask[1]
        if wanted is None:
            return False
        reached = [t for t in live if t < wanted or (t == wanted and not strict)]
        return time == max(reached, default=None)

    assert meant(versions, stream, pairs) == expected(versions, asked, inside)


BOTH = st.tuples(st.booleans(), st.booleans())
FLAG = st.booleans()


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@HARD
@given(data=st.data(), buckets=st.integers(1, 2), null_safe=FLAG, strict=BOTH, sides=BOTH)
def test_they_find_what_a_loop_finds(
    kind: pa.DataType,
    data: st.DataObject,
    buckets: int,
    null_safe: bool,
    strict: tuple[bool, bool],
    sides: tuple[bool, bool],
) -> None:
    versions = filled(kind, data.draw(epochs(kind)), buckets, null_safe=null_safe)
    asked = data.draw(asks(kind))
    check_range(versions, asked, strict, sides)
    check_nearest(versions, asked, strict=strict[0])


@pytest.mark.usefixtures("_small", "weak_hash")
@HARD
@given(changes=epochs(pa.string()), asked=asks(pa.string()), null_safe=FLAG, strict=BOTH)
def test_keys_that_collide_find_nothing_of_each_other(
    changes: list[list[Version]], asked: list[Ask], null_safe: bool, strict: tuple[bool, bool]
) -> None:
    versions = filled(pa.string(), changes, 1, null_safe=null_safe)
    check_range(versions, asked, strict, (True, True))
    check_nearest(versions, asked, strict=strict[0])


@pytest.mark.parametrize("null_safe", [False, True])
def test_an_integer_that_hashes_like_null_is_not_null(null_safe: bool) -> None:
    odd = unmixed(int(NULL_HASH))
    versions = Versions(pa.int64(), null_safe=null_safe)
    versions.epoch([(odd, "odd", 1, 1), (None, "none", 2, 1), (odd, "odd", 3, 1), (None, "none", 4, 1)])
    versions.epoch([(odd, "odd", 3, -1), (odd, "alone", 5, 1)])
    check_range(versions, [(odd, 0, 9), (None, 0, 9)], (False, False), (True, True))
    check_nearest(versions, [(odd, 4, None), (None, 4, None), (odd, 9, None)], strict=False)


def test_keys_of_another_width_and_keys_that_are_computed() -> None:
    versions = Versions(pa.int64())
    computed = text_expression('"k" % 10', pa.int64(), ("k",))
    versions.arrangement = Arrangement(ViewRows("v"), Key((computed,)), versions.schema, "t")
    versions.epoch([(11, "a", 1, 1), (21, "b", 2, 1), (12, "c", 3, 1)])
    stream = versions.stream([1, 2, 3], pa.int32())
    at = bound(times(stream, [9, 9, 9]), strict=False)
    pairs = match_nearest(stream, versions.runs, versions.key(pa.int32()), versions.arrangement, at)
    assert meant(versions, stream, pairs) == {(0, "b", 2): 1, (1, "c", 3): 1}


def test_a_key_of_no_columns_is_one_key() -> None:
    versions = Versions(pa.int64())
    versions.arrangement = Arrangement(ViewRows("v"), Key(()), versions.schema, "t")
    versions.epoch([(1, "a", 1, 1), (2, "b", 4, 1), (None, "c", 4, 1)])
    stream = versions.stream([5, 6]).set_column(2, "__hash", pa.array(np.zeros(2, np.uint64)))
    at = bound(times(stream, [3, 4]), strict=False)
    pairs = match_nearest(stream, versions.runs, Key(()), versions.arrangement, at)
    assert meant(versions, stream, pairs) == {(0, "a", 1): 1, (1, "b", 4): 1, (1, "c", 4): 1}
