"""The nearest live value: as if all rows were added up first, whatever the runs take back from each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.kernels.arrow import nearest as nearest_module
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.nearest import nearest, nearest_rows, search, weights
from rejoinder.kernels.arrow.ordered import Bound, views
from tests.unit.kernels.arrow.ordered_runs import KEYS, RUNS, TIMES, Row, run, searched, totals

ASKS = st.lists(st.tuples(KEYS, TIMES), max_size=10)


def check(runs: list[list[Row]], asks: list[tuple[str | None, int]], *, later: bool, strict: bool) -> None:
    found, order = searched([run(rows) for rows in runs], [key for key, _ in asks])
    values = np.array([asks[at][1] for at in order], np.int64)
    nearest_values, answered = nearest(found, values, later=later, strict=strict)
    sums = totals(runs)
    counted = weights(found, values)
    for at, needle in enumerate(order):
        key, value = asks[needle]
        assert counted[at] == sums[key, value]
        live = [t for (k, t), count in sums.items() if k == key and t is not None and count > 0]
        live = [t for t in live if (t > value if later else t < value) or (t == value and not strict)]
        expected = (min if later else max)(live, default=None)
        assert (int(nearest_values[at]) if answered[at] else None) == expected


ARGUMENTS = {"runs": RUNS, "asks": ASKS, "later": st.booleans(), "strict": st.booleans()}


@settings(max_examples=200)
@given(**ARGUMENTS)
def test_it_is_the_nearest_value_with_a_positive_sum(**arguments: Any) -> None:
    check(**arguments)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(**ARGUMENTS)
def test_collisions_make_nothing_live_and_hide_nothing(weak_hash: None, **arguments: Any) -> None:
    check(**arguments)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("block", [16, nearest_module.BLOCK_ROWS])
def test_many_dead_values_cost_few_rounds(later: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_module, "BLOCK_ROWS", block)
    rounds = 0
    one_round = nearest_module.block_edge

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return one_round(*arguments, **options)

    monkeypatch.setattr(nearest_module, "block_edge", counted)
    size = 4_000
    alive = size + 1 if later else -1
    runs: list[list[Row]] = [
        [("a", alive, 1), *(("a", at, 1) for at in range(size))],
        [("a", at, -1) for at in range(0, size, 2)],
        [("a", at, -1) for at in range(1, size, 2)],
    ]
    found, _ = searched([run(rows) for rows in runs], ["a", "a"])
    values, answered = nearest(found, np.array([0 if later else size] * 2), later=later, strict=False)
    assert answered.all() and values.tolist() == [alive] * 2
    assert rounds <= (size if block == 16 else 20)


@settings(max_examples=100)
@given(**ARGUMENTS, unknown=st.lists(st.booleans(), min_size=10, max_size=10))
def test_the_rows_at_the_nearest_value_are_listed(
    runs: list[list[Row]], asks: list[tuple[str | None, int]], later: bool, strict: bool, unknown: list[bool]
) -> None:
    tables = [run(rows) for rows in runs]
    found, order = searched(tables, [key for key, _ in asks])
    values = np.array([asks[at][1] for at in order], np.int64)
    known = ~np.array([unknown[at] for at in order], bool)
    pairs = nearest_rows(found, Bound(values, strict, known), later=later)
    wanted, answered = nearest(found, values, later=later, strict=strict)
    for table, (left, right) in zip(tables, pairs, strict=True):
        content = list(zip(table["k"].to_pylist(), table["t"].to_pylist(), strict=True))
        expected = [
            (at, row)
            for at, needle in enumerate(order.tolist())
            for row, place in enumerate(content)
            if known[at] and answered[at] and place == (asks[needle][0], int(wanted[at]))
        ]
        assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == expected


def test_hashes_decide_where_keys_are_exact() -> None:
    tables = [run([("a", 1, 1), ("a", 3, 1), ("b", 9, 1)]), run([("a", 3, 1), ("a", 4, 1)])]
    hashed = np.unique(np.concatenate([hash_rows([table["k"]], table.num_rows) for table in tables]))
    found = search(hashed, views(tables, "t"), None)
    at = hashed.tolist().index(int(hash_rows([tables[0]["k"]], 3)[tables[0]["k"].to_pylist().index("a")]))
    values, answered = nearest(found, np.array([3, 3]), later=False, strict=False)
    assert answered[at] and values[at] == 3 and not answered[1 - at]
    assert weights(found, np.array([3, 3]))[at] == 2
