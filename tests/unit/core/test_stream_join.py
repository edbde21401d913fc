"""Joins within time bounds against the relational join: any kind, split, order, restart and number of instances."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.core import JoinCondition, LateRows, Message, Rows, StreamJoin, Watermark
from rejoinder.core.join_condition import Kind
from rejoinder.core.stream_join import Formula
from rejoinder.errors import (
    AmbiguousName,
    DefinitionConflict,
    LimitReached,
    PlanningError,
    SchemaChanged,
    StateError,
    TypeMismatch,
    UnknownName,
    Unsupported,
)
from rejoinder.kernels.duckdb.text_expression import text_expression
from tests.deep import seeds

SIDES = (
    pa.schema([("l.k", pa.int64()), ("l.t", pa.int64()), ("l.f", pa.int64())]),
    pa.schema([("r.k", pa.int64()), ("r.t", pa.int64()), ("r.n", pa.string())]),
)
TIMES = ({"l.t": 0}, {"r.t": 1})
WITHIN = text_expression('"r.t" BETWEEN "l.t" - 2 AND "l.t" + 3', pa.bool_(), ("r.t", "l.t"))
SINGLE = {0: text_expression('"l.f" > 1', pa.bool_(), ("l.f",))}
POSTPONE = {0: {1: 2}, 1: {0: 3}}
KINDS: tuple[Kind, ...] = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
DAYS = SIDES[0].set(1, pa.field("l.t", pa.date32()))
NAMES = [[field.name for field in side] for side in SIDES]


def condition(kind: Kind, *, equi: bool) -> JoinCondition:
    on = [("l.k", "r.k")] if equi else []
    return JoinCondition(kind, SIDES, TIMES, POSTPONE, WITHIN, on=on, single=SINGLE)


def relational(kind: Kind, *, equi: bool, rows: list[list[dict[str, Any]]]) -> Counter[tuple[Any, ...]]:
    def meets(left: dict[str, Any], right: dict[str, Any]) -> bool:
        keys = not equi or (left["l.k"] is not None and left["l.k"] == right["r.k"])
        return keys and left["l.f"] > 1 and left["l.t"] - 2 <= right["r.t"] <= left["l.t"] + 3

    pairs = [(at, to) for at, left in enumerate(rows[0]) for to, right in enumerate(rows[1]) if meets(left, right)]
    matched = {at for at, _ in pairs}, {to for _, to in pairs}
    lefts, rights = ([tuple(row.values()) for row in side] for side in rows)
    nothing: tuple[None, ...] = (None, None, None)
    alone = [row for at, row in enumerate(lefts) if at not in matched[0]]
    if kind == "SEMI":
        return Counter(lefts[at] for at in matched[0])
    if kind == "ANTI":
        return Counter(alone)
    result: Counter[tuple[Any, ...]] = Counter((*lefts[at], *rights[to]) for at, to in pairs)
    if kind in ("LEFT", "FULL"):
        result.update((*row, *nothing) for row in alone)
    if kind in ("RIGHT", "FULL"):
        result.update((*nothing, *row) for to, row in enumerate(rights) if to not in matched[1])
    return result


class Run:
    """Instances of a join under random input, watermarks, restarts and changes of their number."""

    def __init__(self, seed: int, kind: Kind, formula: Formula, *, equi: bool) -> None:
        self.random = random.Random(seed)
        self.kind, self.formula, self.equi = kind, formula, equi
        self.joins = self.made(1)
        self.accepted: list[list[dict[str, Any]]] = [[], []]
        self.late = 0
        self.found: Counter[tuple[Any, ...]] = Counter()
        self.received = [-1, -1]

    def made(self, count: int) -> list[StreamJoin]:
        what = condition(self.kind, equi=self.equi)
        return [StreamJoin(what, formula=self.formula, instance=at, instances=count) for at in range(count)]

    def take(self, join: StreamJoin, messages: list[Message], emitted: dict[int, int]) -> None:
        for message in messages:
            if isinstance(message, Watermark):
                assert message.time > emitted.get(message.key, -100)
                emitted[message.key] = message.time
            elif isinstance(message, LateRows):
                assert all(
                    row[f"{'lr'[message.ordinal]}.t"] < self.received[message.ordinal]
                    for row in message.table.to_pylist()
                )
            else:
                assert isinstance(message, Rows)
                for row in message.table.to_pylist():
                    for key, name in ((0, "l.t"), (1, "r.t")):
                        assert row.get(name) is None or row[name] >= emitted.get(key, -100), (
                            "a row that is emitted late"
                        )
                    self.found[tuple(row.values())] += 1

    def play(self) -> None:
        for _ in range(30):
            what = self.random.random()
            ordinal = self.random.randrange(2)
            if what < 0.6:
                self.rows(ordinal)
            elif what < 0.9:
                self.watermark(ordinal, self.received[ordinal] + self.random.randint(1, 5))
            else:
                snapshots = [join.snapshot() for join in self.joins]
                self.joins = self.made(1 if self.kind == "FULL" and not self.equi else self.random.randint(1, 3))
                for join in self.joins:
                    join.restore(*snapshots)
        for ordinal in (0, 1):
            self.watermark(ordinal, 1000)

    def rows(self, ordinal: int) -> None:
        side = "lr"[ordinal]
        rows = [
            {
                f"{side}.k": self.random.choice([1, 2, None]),
                f"{side}.t": max(0, self.received[ordinal] + self.random.randint(-3, 8)),
                NAMES[ordinal][2]: self.random.randint(0, 4) if ordinal == 0 else self.random.choice(["x", None]),
            }
            for _ in range(self.random.randint(1, 6))
        ]
        kept = [row for row in rows if row[f"{side}.t"] >= self.received[ordinal]]  # type: ignore[operator]
        self.accepted[ordinal] += kept
        self.late += len(rows) - len(kept)
        table = pa.Table.from_pylist(rows, schema=SIDES[ordinal])
        for join, part in zip(self.joins, self.joins[0].routed(ordinal, table, len(self.joins)), strict=True):
            self.take(join, join.rows(ordinal, part), join.emitted())

    def watermark(self, ordinal: int, time: int) -> None:
        self.received[ordinal] = time
        for join in self.joins:
            before = join.emitted()
            self.take(join, join.watermark(ordinal, ordinal, time), before)


@pytest.mark.parametrize("formula", ["min_buffer", "wm_state"])
@pytest.mark.parametrize("equi", [True, False], ids=["equi", "theta"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_is_the_relational_join(kind: Kind, equi: bool, formula: Formula) -> None:
    """HZJ-PRC-14, HZJ-PRC-15, HZJ-PRC-17, HZJ-FT-02."""
    late = 0
    for seed in seeds(1):
        run = Run(seed, kind, formula, equi=equi)
        run.play()
        assert run.found == relational(kind, equi=equi, rows=run.accepted), f"seed {seed}"
        assert all(join.buffer(ordinal).num_rows == 0 for join in run.joins for ordinal in (0, 1)), f"seed {seed}"
        late += run.late
    assert late


def test_state_stays_small_under_advancing_watermarks() -> None:
    """HZJ-MEM-02: with a lag of 10, no more rows than two windows of lag and postpone times hold."""
    join = StreamJoin(condition("INNER", equi=False))
    batch, per_time, most = 500, 10, 0
    for number in range(20):
        first = number * batch // per_time
        times = pa.array([first + at // per_time for at in range(batch)])
        ones = pa.array([2] * batch)
        join.rows(
            0, pa.table({"l.k": ones, "l.t": times, "l.f": pa.array([2 if at % 50 else 0 for at in range(batch)])})
        )
        join.rows(1, pa.table({"r.k": ones, "r.t": times, "r.n": pa.nulls(batch, pa.string())}))
        for ordinal in (0, 1):
            if first >= 10:
                join.watermark(ordinal, ordinal, first - 10 + batch // per_time)
        most = max(most, join.buffer(0).num_rows + join.buffer(1).num_rows)
    assert most <= 2 * (batch + per_time * (10 + 5)) * 2
    assert join._query.files < 20


def test_a_stalled_side_grows_until_the_cap() -> None:
    """HZJ-MEM-03: the error names the input and the counts, and nothing is kept of the batch."""
    join = StreamJoin(condition("INNER", equi=True), max_rows=5)
    row = {"l.k": 1, "l.t": 1, "l.f": 5}
    join.rows(0, pa.Table.from_pylist([row] * 4, schema=SIDES[0]))
    with pytest.raises(LimitReached, match=r"keep 6 rows, and the limit is 5(.|\n)*input 0 has 4(.|\n)*input 0 adds 2"):
        join.rows(0, pa.Table.from_pylist([row] * 2, schema=SIDES[0]))
    assert join.buffer(0).num_rows == 4


def test_rows_without_a_time_are_late() -> None:
    join = StreamJoin(condition("LEFT", equi=True))
    (late,) = join.rows(0, pa.Table.from_pylist([{"l.k": 1, "l.t": None, "l.f": 2}], schema=SIDES[0]))
    assert isinstance(late, LateRows) and late.ordinal == 0


def test_a_batch_without_a_column_is_refused() -> None:
    with pytest.raises(SchemaChanged, match=r"input 1 needs a column `r.k` of type int64(.|\n)*no such column"):
        StreamJoin(condition("LEFT", equi=True)).rows(1, pa.table({"r.t": [1]}))


def test_times_may_be_timestamps() -> None:
    kind = pa.timestamp("us")
    sides = pa.schema([("a", kind)]), pa.schema([("b", kind)])
    within = text_expression('"b" BETWEEN "a" AND "a" + INTERVAL 1 SECOND', pa.bool_(), ("a", "b"))
    join = StreamJoin(JoinCondition("LEFT", sides, ({"a": 0}, {"b": 1}), {0: {1: 0}, 1: {0: 1_000_000}}, within))
    times = pa.array([0, 5_000_000]).view(kind)
    join.rows(0, pa.table({"a": times}))
    (joined,) = join.rows(1, pa.table({"b": pa.array([5_500_000]).view(kind)}))
    assert isinstance(joined, Rows) and joined.table.column("a").to_pylist() == [times[1].as_py()]
    padded, mark = join.watermark(1, 1, 6_000_000)
    assert isinstance(padded, Rows) and padded.padded and padded.table.column("b").null_count == 1
    assert mark == Watermark(1, 5_500_000)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"schemas": (SIDES[0], SIDES[0])}, AmbiguousName, "both inputs have a column `l.k`"),
        ({"times": ({"l.t": 0}, {})}, Unsupported, "input 1 of the join has no watermarked column"),
        ({"times": ({"l.t": 0}, {"r.t": 0})}, DefinitionConflict, "the same watermark key"),
        (
            {"postpone": {0: {0: 1}, 1: {0: 1}}},
            DefinitionConflict,
            "from key 0 to key 0 is not a bound between the inputs",
        ),
        ({"postpone": {0: {7: 1}}}, DefinitionConflict, "from key 0 to key 7"),
        ({"postpone": {0: {1: 1}}}, Unsupported, "nothing bounds how long rows of input 0 are kept"),
        ({"postpone": {0: {1: 1.5}, 1: {0: 1}}}, TypeMismatch, r"from key 0 to key 1 is 1\.5"),
        ({"kind": "OUTER"}, UnknownName, "no kind of join `OUTER`"),
        ({"kind": "left"}, UnknownName, r"no kind of join `left`(.|\n)*LEFT"),
        ({"times": ({"l.nope": 0}, {"r.t": 1})}, UnknownName, "`l.nope`, which is a time of the join"),
        ({"times": ({"l.t": 0}, {"r.n": 1})}, TypeMismatch, "`r.n`, which is a time of the join, has no times"),
        ({"schemas": (DAYS, SIDES[1])}, TypeMismatch, "`l.t` and `r.t` have different units"),
        ({"on": [("l.nope", "r.k")]}, UnknownName, "`l.nope`, which is in `on`"),
        ({"on": [("l.k", "r.n")]}, TypeMismatch, "`l.k` and `r.n` must be equal"),
        ({"condition": text_expression('"x"', pa.bool_(), ("x",))}, UnknownName, "`x`, which is in the condition"),
        ({"single": {0: text_expression('"r.t" > 1', pa.bool_(), ("r.t",))}}, UnknownName, "rows of input 0"),
    ],
)
def test_what_cannot_be_joined_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    """HZJ-PRC-13, HZJ-BND-08."""
    given: dict[str, Any] = {
        "kind": "INNER",
        "schemas": SIDES,
        "times": TIMES,
        "postpone": POSTPONE,
        "condition": WITHIN,
    }
    with pytest.raises(error, match=message):
        StreamJoin(JoinCondition(**(given | change)))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"formula": "bogus"}, "no formula `bogus`"),
        ({"max_rows": -1}, "at most -1 rows"),
        ({"instance": 2, "instances": 2}, "no instance 2 among 2"),
    ],
)
def test_options_of_a_join_are_checked(option: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanningError, match=message):
        StreamJoin(condition("INNER", equi=True), **option)


def test_a_snapshot_of_other_columns_is_refused() -> None:
    join = StreamJoin(condition("INNER", equi=True))
    with pytest.raises(StateError, match="not a snapshot of a StreamJoin"):
        join.restore({"x": 1})
    saved = join.snapshot()
    saved["rows"][0] = pa.table({"other": [1], "__used": [False]})
    with pytest.raises(SchemaChanged, match="input 0 needs a column"):
        join.restore(saved)


def test_a_cap_may_stand_in_for_a_bound() -> None:
    one_sided = JoinCondition("INNER", SIDES, TIMES, {0: {1: 1}}, WITHIN)
    assert StreamJoin(one_sided, max_rows=10).rows(0, SIDES[0].empty_table()) == []


def test_a_preserved_side_needs_a_bound_despite_a_cap() -> None:
    one_sided = JoinCondition("LEFT", SIDES, TIMES, {0: {1: 1}}, WITHIN)
    with pytest.raises(Unsupported, match="nothing bounds how long rows of input 0 are kept"):
        StreamJoin(one_sided, max_rows=10)


def test_a_capped_side_without_a_bound_is_joined_and_the_other_expires() -> None:
    join = StreamJoin(JoinCondition("INNER", SIDES, TIMES, {0: {1: 2}}, WITHIN), max_rows=10)
    join.rows(0, pa.Table.from_pylist([{"l.k": 1, "l.t": 5, "l.f": 2}], schema=SIDES[0]))
    (joined,) = join.rows(1, pa.Table.from_pylist([{"r.k": 1, "r.t": 6, "r.n": "x"}], schema=SIDES[1]))
    assert isinstance(joined, Rows) and joined.table.num_rows == 1
    join.watermark(0, 0, 100)
    assert [join.buffer(at).num_rows for at in (0, 1)] == [1, 0]
    assert join._query.content("right").num_rows == 0


def test_a_full_theta_join_runs_on_one_instance() -> None:
    with pytest.raises(Unsupported, match="one instance only"):
        StreamJoin(condition("FULL", equi=False), instances=2)
