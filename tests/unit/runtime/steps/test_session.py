"""Session: the change of the rows with their starts is the difference, and costs what changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.ir.identities import ViewRows
from rejoinder.kernels.arrow import chains
from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, single_chunk
from rejoinder.kernels.arrow.ordered import order_values
from rejoinder.kernels.arrow.scatter import scatter
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Arrange, Session
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.steps.time.session import session
from rejoinder.runtime.task import Task, partition_hashes
from tests.deep import TIMES
from tests.unit.runtime.versions import Version, Versions, epochs, minus

GAP = 1


class SessionRows(Versions):
    """The relation `v` with the starts of its sessions, by key and time."""

    def __init__(self, kind: pa.DataType, gap: int = GAP, **options: Any) -> None:
        super().__init__(kind, **options)
        self.gap = gap
        schema = self.schema.append(pa.field("start", self.schema.field("t").type))
        self.arrangement = Arrangement(ViewRows("v"), self.arrangement.key, schema, "t")

    def epoch(self, rows: Any) -> Counter[tuple[Any, ...]]:
        """Let rows come and go (those that can); give the change of the rows with their starts."""
        self.number += 1
        possible = []
        for key, payload, time, diff in rows:
            if self.rows[key, payload, time] + diff >= 0:
                self.rows[key, payload, time] += diff
                possible.append((key, payload, time, diff))
        change: Counter[tuple[Any, ...]] = Counter()
        table = self.table(possible) if possible else self.table([]).slice(0, 0)
        hashed, _ = partition_hashes(table.drop_columns([DIFF]), self.arrangement.key)
        for bucket, part in scatter(table, hashed, len(self.spines)):
            before = {self.arrangement.id: self.spines[bucket]}
            task = Task(self.store, self.number, bucket, len(self.spines), before, 100)
            task.streams["in"] = part
            session(task, Session("in", "out", self.arrangement, "start", self.gap))
            if "out" in task.streams:
                change.update(counted(task.streams["out"]))
                arrange(task, Arrange("out", self.arrangement, check=True))
                insert_runs(task)
                self.spines[bucket] = task.report.spines.get(self.arrangement.id, self.spines[bucket])
        return Counter({row: count for row, count in change.items() if count})

    def starts(self) -> Counter[tuple[Any, ...]]:
        """What the relation holds, from its rows."""
        result: Counter[tuple[Any, ...]] = Counter()
        for key in {key for key, _, _ in self.rows}:
            previous = start = None
            live = {t for (k, _, t), count in self.rows.items() if k == key and count and t is not None}
            for time in sorted(live):
                start = time if previous is None or time - previous > self.gap else start
                previous = time
                for (k, payload, t), count in self.rows.items():
                    if k == key and t == time and count:
                        result[k, payload, t, start] = count
        return result


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    count = diffs(table)
    table = table.drop_columns([name for name in (HASH, DIFF) if name in table.column_names]).combine_chunks()
    times = [order_values(single_chunk(table.column(name))) for name in ("t", "start")]
    keys, payloads = table.column("k").to_pylist(), table.column("p").to_pylist()
    result: Counter[tuple[Any, ...]] = Counter()
    for key, payload, time, start, number in zip(keys, payloads, *times, count, strict=True):
        result[key, payload, int(time), int(start)] += int(number)
    return result


def check(rows: SessionRows, changes: list[list[Version]], cuts: list[int]) -> None:
    before: Counter[tuple[Any, ...]] = Counter()
    for number, change in enumerate(changes):
        if number < len(cuts):
            rows.cut(cuts[number])
        found = rows.epoch(change)
        now = rows.starts()
        assert found == minus(now, before)
        before = now


HARD = settings(max_examples=10 * TIMES, suppress_health_check=[HealthCheck.function_scoped_fixture])
CUTS = st.lists(st.integers(1, 3), max_size=8)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@HARD
@given(data=st.data(), cuts=CUTS)
def test_the_change_is_the_difference(kind: pa.DataType, gap: int, data: st.DataObject, cuts: list[int]) -> None:
    check(SessionRows(kind, gap), data.draw(epochs(kind)), cuts)


@pytest.mark.usefixtures("_small", "weak_hash")
@HARD
@given(changes=epochs(pa.string()), cuts=CUTS)
def test_partitions_that_collide_do_not_extend_each_other(changes: list[list[Version]], cuts: list[int]) -> None:
    check(SessionRows(pa.string()), changes, cuts)


def test_a_row_between_two_sessions_merges_them_and_its_deletion_splits_them() -> None:
    rows = SessionRows(pa.string(), 10)
    rows.epoch([("u", "p", 0, 1), ("u", "p", 8, 1), ("u", "p", 26, 1), ("u", "p", 30, 1), ("u", "p", 90, 1)])
    assert rows.epoch([("u", "q", 17, 1)]) == {
        ("u", "q", 17, 0): 1,
        ("u", "p", 26, 26): -1,
        ("u", "p", 26, 0): 1,
        ("u", "p", 30, 26): -1,
        ("u", "p", 30, 0): 1,
    }
    assert rows.epoch([("u", "q", 17, -1), ("u", "p", 0, -1)]) == {
        ("u", "q", 17, 0): -1,
        ("u", "p", 0, 0): -1,
        ("u", "p", 8, 0): -1,
        ("u", "p", 8, 8): 1,
        ("u", "p", 26, 0): -1,
        ("u", "p", 26, 26): 1,
        ("u", "p", 30, 0): -1,
        ("u", "p", 30, 26): 1,
    }


def test_times_exactly_a_gap_apart_are_in_one_session() -> None:
    rows = SessionRows(pa.int64(), 5)
    assert rows.epoch([(1, "p", 0, 1), (1, "p", 5, 1), (1, "p", 11, 1)]) == {
        (1, "p", 0, 0): 1,
        (1, "p", 5, 0): 1,
        (1, "p", 11, 11): 1,
    }


def test_a_row_at_the_end_of_a_long_session_changes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SessionRows(pa.int64(), 5)
    rows.epoch([(1, "p", at, 1) for at in range(10_000)])
    followed = []
    monkeypatch.setattr(chains, "live_values", lambda *given: followed.append(given))
    assert rows.epoch([(1, "q", 10_000, 1)]) == {(1, "q", 10_000, 0): 1}
    assert rows.epoch([(1, "q", 5_000, 1)]) == {(1, "q", 5_000, 0): 1}
    assert not followed
