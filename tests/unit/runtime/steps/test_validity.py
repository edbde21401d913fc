"""Validity: the change of the windows is the difference of the windows, and costs what changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.kernels.arrow import nearest, ordered, probe
from rejoinder.kernels.arrow.ordered import last_value
from rejoinder.plan.physical.steps import Validity
from rejoinder.runtime.steps.time.validity import validity
from rejoinder.runtime.task import Task
from tests.deep import TIMES
from tests.unit.runtime.versions import TIMESTAMP, Version, Versions, epochs, minus, windows

FOREVER = last_value(TIMESTAMP)


def check(versions: Versions, changes: list[list[Version]], cuts: list[int]) -> None:
    last = last_value(versions.schema.field("t").type)
    before: Counter[tuple[Any, ...]] = Counter()
    for number, rows in enumerate(changes):
        if number < len(cuts):
            versions.cut(cuts[number])
        change = versions.epoch(rows)
        now = versions.ends(last)
        assert change == minus(now, before)
        before = now


HARD = settings(max_examples=15 * TIMES, suppress_health_check=[HealthCheck.function_scoped_fixture])
CUTS = st.lists(st.integers(1, 3), max_size=8)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@HARD
@given(data=st.data(), cuts=CUTS)
def test_the_change_is_the_difference(kind: pa.DataType, data: st.DataObject, cuts: list[int]) -> None:
    check(Versions(kind), data.draw(epochs(kind)), cuts)


@pytest.mark.usefixtures("_small", "weak_hash")
@HARD
@given(changes=epochs(pa.string()), cuts=CUTS)
def test_partitions_that_collide_do_not_end_each_other(changes: list[list[Version]], cuts: list[int]) -> None:
    check(Versions(pa.string()), changes, cuts)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("time", [pa.date32(), pa.int8(), pa.int64(), pa.timestamp("us")], ids=str)
@settings(max_examples=5 * TIMES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=epochs(pa.int64()))
def test_times_of_every_kind(time: pa.DataType, changes: list[list[Version]]) -> None:
    check(Versions(pa.int64(), time=time), changes, [2])


def test_a_version_that_comes_late_splits_a_window() -> None:
    versions = Versions(pa.string())
    versions.epoch([("usd", "1", 10, 1), ("usd", "3", 30, 1), ("eur", "x", 15, 1)])
    assert versions.epoch([("usd", "2", 20, 1)]) == {
        ("usd", "1", 10, 30): -1,
        ("usd", "1", 10, 20): 1,
        ("usd", "2", 20, 30): 1,
    }
    assert versions.epoch([("usd", "2", 20, -1), ("usd", "2b", 20, 1)]) == {
        ("usd", "2", 20, 30): -1,
        ("usd", "2b", 20, 30): 1,
    }
    assert versions.epoch([("usd", "3", 30, -1), ("usd", "2c", 20, 2)]) == {
        ("usd", "3", 30, FOREVER): -1,
        ("usd", "2b", 20, 30): -1,
        ("usd", "2b", 20, FOREVER): 1,
        ("usd", "2c", 20, FOREVER): 2,
    }


def test_what_is_there_already_counts_from_nothing() -> None:
    versions = Versions(pa.int64())
    versions.epoch([(1, "a", 1, 1), (1, "b", 2, 1), (None, "n", 1, 1), (1, "gone", 5, 1)])
    versions.epoch([(1, "gone", 5, -1)])
    task = Task(versions.store, 9, 0, 1, {versions.arrangement.id: versions.spines[0]}, 100)
    rows: list[Version] = [(k, p, t, count) for (k, p, t), count in versions.rows.items()]
    task.streams["in"] = versions.table(rows)
    validity(task, Validity("in", "out", versions.arrangement, "end", whole=True))
    assert windows(task.streams["out"]) == versions.ends(FOREVER)


class Counted(np.ndarray[Any, Any]):
    """An order column that counts how many of its values are looked at."""

    touched = 0

    def __getitem__(self, index: Any) -> Any:
        found = np.asarray(super().__getitem__(index))
        Counted.touched += found.size
        return found


def touched(kind: pa.DataType, size: int) -> list[int]:
    """What a version in the middle, one at the end and a retraction cost in a partition of many versions."""
    versions = Versions(kind)
    key = 1 if kind == pa.int64() else "usd"
    for part in range(10):
        versions.epoch([(key, "p", 2 * at, 1) for at in range(part, size, 10)])
    versions.epoch([(key, "p", 0, -1), (key, "p", size, -1), (key, "q", size, 1)])
    expand, values = probe.expand, ordered.order_values
    result = []
    with pytest.MonkeyPatch.context() as patch:

        def counted(left: Any, low: Any, count: Any) -> Any:
            Counted.touched += int(count.sum())
            return expand(left, low, count)

        patch.setattr(nearest, "expand", counted)
        patch.setattr(ordered, "order_values", lambda array: values(array).view(Counted))
        for row in ((key, "new", size + 1, 1), (key, "new", 2 * size, 1), (key, "q", size, -1)):
            Counted.touched = 0
            assert len(versions.epoch([row])) == 3
            result.append(Counted.touched)
    return result


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_a_new_version_touches_few_rows(kind: pa.DataType) -> None:
    few, many = touched(kind, 1_000), touched(kind, 100_000)
    assert min(few) > 0 and max(many) < 5_000, "a hundred times the versions, and hardly more to look at"
    assert all(more <= 3 * less for more, less in zip(many, few, strict=True))
