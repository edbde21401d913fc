"""Distinct: output = [count after > 0] − [count before > 0], for every row that changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.plan.physical.steps import Arrange, Distinct
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.steps.distinct import distinct
from tests.unit.runtime.tasks import arrangement, delta, meaning, task

COUNTS = arrangement("k", "s", null_safe=True)
ROWS = st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, "", "a"]), st.sampled_from([-1, 1, 1, 2]))


@given(epochs=st.lists(st.lists(ROWS, max_size=8), max_size=6))
def test_each_row_is_there_once_if_at_all(epochs: list[list[tuple[int | None, str | None, int]]]) -> None:
    counts: Counter[Any] = Counter()
    shown: Counter[Any] = Counter()
    last = None
    for rows in epochs:
        now = task(last.report.spines if last else None, epoch=(last.epoch + 1 if last else 0), store_of=last)
        now.streams["in"] = delta(rows, COUNTS.key)
        distinct(now, Distinct("in", "out", COUNTS))
        arrange(now, Arrange("in", COUNTS, check=False))
        insert_runs(now)
        now.report.spines = {**(last.report.spines if last else {}), **now.report.spines}
        change = meaning(now.streams.get("out"))
        assert set(change.values()) <= {-1, 1}
        for k, s, diff in rows:
            counts[k, s] += diff
        shown.update(change)
        assert {row for row, count in shown.items() if count} == {row for row, count in counts.items() if count > 0}
        last = now


def test_the_whole_content_counts_from_nothing() -> None:
    now = task()
    now.streams["in"] = delta([(1, "a", 3), (2, "b", 1), (2, "b", -1)], COUNTS.key)
    arrange(now, Arrange("in", COUNTS, check=False))
    insert_runs(now)
    again = task(now.report.spines, store_of=now)
    again.streams["in"] = now.streams["in"]
    distinct(again, Distinct("in", "out", COUNTS, whole=True))
    assert meaning(again.streams["out"]) == {(1, "a"): 1}
    distinct(again, Distinct("in", "none", COUNTS))
    assert "none" not in again.streams
