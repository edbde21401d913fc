"""Lookup: stream ⋈ arrangement, multiplicities multiplied; NULL meets nothing, not even what hashes like it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.ir.expressions.expression import column
from rejoinder.kernels.arrow.hashing import _M1, _M2, NULL_HASH
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.plan.physical.steps import Arrange
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.steps.lookup import lookup
from rejoinder.runtime.task import Task
from rejoinder.testing import Driver
from tests.unit.runtime.tasks import SCHEMA, arrangement, delta, key, meaning, task

BY_K, BY_BOTH = arrangement("k"), arrangement("k", "s")
ROWS = st.lists(
    st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "", "a"]), st.sampled_from([-1, 1, 2])),
    max_size=8,
)
Rows = list[tuple[int | None, str | None, int]]


def joined(left: Rows, runs: list[Rows], names: tuple[str, ...]) -> Counter[Any]:
    result: Counter[Any] = Counter()
    for row in left:
        for other in (other for run in runs for other in run):
            here, there = ([r[SCHEMA.get_field_index(name)] for name in names] for r in (row, other))
            if here == there and None not in here:
                result[row[0], row[1], other[1]] += row[2] * other[2]
    return Counter({pair: diff for pair, diff in result.items() if diff})


def filled(runs: list[Rows], target: Arrangement) -> Task:
    """A task over an arrangement with these runs."""
    now = task()
    for rows in runs:
        before = {**now.before, **now.report.spines}
        now = task(before, store_of=now)
        now.streams["r"] = delta(rows, target.key)
        arrange(now, Arrange("r", target, check=False))
        insert_runs(now)
        now.report.spines = {**before, **now.report.spines}
    return now


@pytest.mark.parametrize("names", [("k",), ("k", "s")])
@given(left=ROWS, runs=st.lists(ROWS, max_size=3))
def test_it_is_the_join(names: tuple[str, ...], left: Rows, runs: list[Rows]) -> None:
    target = BY_K if names == ("k",) else BY_BOTH
    now = filled(runs, target)
    now.streams["in"] = delta(left)
    step = Lookup("in", "out", target, key(*names), True, ("k", "s"), (("s", "other"),), None)
    lookup(now, step)
    assert meaning(now.streams.get("out")) == joined(left, runs, names)


def test_pairs_are_filtered_and_projected() -> None:
    now = task()
    now.streams["r"] = delta([(1, "a", 1), (1, "b", 1)], BY_K.key)
    arrange(now, Arrange("r", BY_K, check=False))
    now.streams["in"] = delta([(1, "x", 2)])
    smaller = text_expression("\"other\" > 'a'", pa.bool_(), ("other",))
    outputs = (
        ("both", text_expression('"s" || "other"', SCHEMA.field("s").type, ("s", "other"))),
        ("k", column("k", SCHEMA.field("k").type)),
    )
    lookup(now, Lookup("in", "out", BY_K, key("k"), True, ("k", "s"), (("s", "other"),), smaller, outputs=outputs))
    assert meaning(now.streams["out"]) == {("xb", 1): 2}


def test_pairs_with_retracted_rows_are_not_made() -> None:
    """Otherwise a path through n inputs that changed twice would make 3ⁿ pairs."""
    now = filled([[(1, "a", 1)], [(1, "a", -1), (1, "b", 1)]], BY_K)
    now.streams["in"] = delta([(1, str(number), 1) for number in range(64)])
    lookup(now, Lookup("in", "out", BY_K, key("k"), True, ("k", "s"), (("s", "other"),), None))
    assert now.streams["out"].num_rows == 64
    assert meaning(now.streams["out"]) == {(1, str(number), "b"): 1 for number in range(64)}


def unmixed(hashed: int) -> int:
    """The integer whose hash this is: the finaliser of splitmix64, backwards."""
    mask = 2**64 - 1
    x = hashed
    x ^= (x >> 31) ^ (x >> 62)
    x = x * pow(int(_M2), -1, 2**64) & mask
    x ^= (x >> 27) ^ (x >> 54)
    x = x * pow(int(_M1), -1, 2**64) & mask
    x ^= (x >> 30) ^ (x >> 60)
    return x - 2**64 if x >= 2**63 else x


@pytest.mark.parametrize("extra", ["", " AND a.s = b.s"])
def test_an_integer_that_hashes_like_null_is_not_null(extra: str) -> None:
    odd = unmixed(int(NULL_HASH))
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG a (k BIGINT, s STRING); CREATE CHANGELOG b (k BIGINT, s STRING)")
    driver.sql(
        f"CREATE VIEW v AS SELECT a.k, b.s FROM a JOIN b ON a.k = b.k{extra}; CREATE VIEW w AS SELECT DISTINCT k FROM a"
    )
    rows: list[dict[str, Any]] = [{"k": odd, "s": "odd"}, {"k": None, "s": "none"}]
    driver.insert("a", *rows, *rows)
    driver.insert("b", *rows)
    driver.step()
    assert driver.table("v") == [{"k": odd, "s": "odd"}] * 2
    assert driver.table("w") == [{"k": None}, {"k": odd}]
