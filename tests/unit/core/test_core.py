"""The core API by itself: what it loads, what it refuses, restarts, and that it agrees with plain recomputation."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoinder.core
from rejoinder.core import AsyncTransform, Call, Idle, Operator, Rows, Union, Watermark, WindowAggregate
from rejoinder.core.messages import rows_of
from rejoinder.errors import (
    EvaluationError,
    MissingInput,
    SchemaChanged,
    StateError,
    TypeMismatch,
    UnknownName,
    Unsupported,
)
from tests.deep import IS_DEEP, TIMES

N = pa.schema([("n", pa.int64())])


def test_it_loads_neither_sql_nor_spark() -> None:
    names = ("rejoinder.sql", "rejoinder.engine", "rejoinder.api", "rejoinder.exchange", "sqlglot", "pyspark")
    program = f"import sys, rejoinder.core; print([name for name in sys.modules if name.startswith({names!r})])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_its_public_names_are_there() -> None:
    assert all(hasattr(rejoinder.core, name) for name in rejoinder.core.__all__)
    assert list(rejoinder.core.__all__) == sorted(rejoinder.core.__all__)


def test_record_batches_are_taken_too() -> None:
    batch = pa.record_batch({"n": pa.array([1], pa.int64())})
    (rows,) = Operator().rows(0, batch)
    assert isinstance(rows, Rows) and rows.table.to_pylist() == [{"n": 1}]


def test_a_union_refuses_other_columns() -> None:
    with pytest.raises(SchemaChanged, match=r"input 1 of the union(.|\n)*it has m string, and the union n int64"):
        Union(2, N).rows(1, pa.table({"m": ["x"]}))
    with pytest.raises(MissingInput):
        Union(2, N).rows(2, pa.table({"n": [1]}))
    with pytest.raises(SchemaChanged, match=r"needs a column `t` of type int64(.|\n)*a batch has string"):
        windows().rows(0, pa.table({"t": ["x"]}))


def test_an_empty_batch_is_no_event() -> None:
    merged = Union(2, N)
    merged.idle(1)
    assert merged.rows(1, N.empty_table()) == [] and merged.idle_inputs() == (1,)


def test_rows_make_an_idle_input_active() -> None:
    merged = Union(2, N)
    merged.idle(1)
    assert merged.idle_inputs() == (1,)
    merged.rows(1, pa.table({"n": [1]}))
    assert merged.idle_inputs() == () and merged.watermark(0, 0, 1) == []
    restored = Union(2, N)
    restored.restore(json.loads(json.dumps(merged.snapshot())))
    assert restored.watermark(1, 0, 5) == [Watermark(0, 1)]


async def gives(row: Mapping[str, Any]) -> Any:
    """An answer by number: none, several, one of a wrong type, one with an unknown column; or a failure."""
    if row["n"] < 0:
        raise ConnectionError("no route")
    return {0: None, 1: [{"n": 10}, {"n": 11}], 2: {"n": "two"}, 3: {"m": 1}}.get(row["n"], {"n": row["n"]})


def test_an_answer_may_be_any_number_of_rows() -> None:
    with AsyncTransform(gives, N) as transform:
        out = transform.rows(0, pa.table({"n": [0, 1, 7]})) + transform.drain() + transform.idle(0)
    assert [table.column("n").to_pylist() for table in rows_of(out)] in ([[10, 11, 7]], [[10, 11], [7]])
    assert out[-1] == Idle()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (-1, r"failed on a row(.|\n)*it raised ConnectionError"),
        (2, "does not fit its schema"),
        (3, "returned a column `m` that its schema lacks"),
    ],
)
def test_a_bad_answer_fails_with_its_row(number: int, message: str) -> None:
    with AsyncTransform(gives, N) as transform:
        transform._start([{"n": number}])
        with pytest.raises(EvaluationError, match=message):
            transform.drain()


def test_calls_are_tried_again_and_given_up_and_may_be_plain() -> None:
    tries: list[int] = []

    def plain(row: Mapping[str, Any]) -> Any:
        tries.append(row["n"])
        if len(tries) < 3:
            raise ConnectionError("no route")
        return {"n": 2 * row["n"]}

    with AsyncTransform(plain, N, retries=2) as transform:
        out = transform.rows(0, pa.table({"n": [4]})) + transform.watermark(0, 0, 1) + transform.drain()
    assert [table.to_pylist() for table in rows_of(out)] == [[{"n": 8}]] and out[-1] == Watermark(0, 1)
    assert tries == [4, 4, 4]

    async def never(row: Mapping[str, Any]) -> Any:
        await asyncio.Event().wait()

    with AsyncTransform(never, N, timeout=0.01) as transform:
        transform.rows(0, pa.table({"n": [4]}))
        with pytest.raises(EvaluationError, match=r"no answer within 0\.01 s"):
            transform.drain()


def test_calls_that_were_out_are_made_again() -> None:
    asked: list[int] = []

    async def never(row: Mapping[str, Any]) -> Any:
        asked.append(row["n"])
        await asyncio.Event().wait()

    for ordered in (True, False):
        with AsyncTransform(never, N, ordered=ordered) as stuck:
            stuck.rows(0, pa.table({"n": [7]}))
            assert stuck.watermark(0, 0, 5) == [] and stuck.wait(timeout=0.01) == []
            stuck.rows(0, pa.table({"n": [8]}))
            stuck.idle(0)
            saved = json.loads(json.dumps(stuck.snapshot()))
        with AsyncTransform(gives, N, ordered=ordered) as again:
            again.restore(saved)
            out = again.drain()
        if ordered:
            assert [table.column("n").to_pylist() for table in rows_of(out)] == [[7], [8]]
            assert [message for message in out if not isinstance(message, Rows)] == [Watermark(0, 5), Idle()]
        rows = [row["n"] for table in rows_of(out) for row in table.to_pylist()]
        assert sorted(rows) == [7, 8] and out.index(Watermark(0, 5)) > 0
        with AsyncTransform(gives, N, ordered=ordered, concurrency=1) as twice:
            twice.restore(saved)  # the second call waits for the first, whose answer is then about to leave
            restored = twice.snapshot()
            assert {"rows": [{"n": 7}]} in restored["leaving"]
            again.restore(restored)
            out = again.drain()
            assert sorted(row["n"] for table in rows_of(out) for row in table.to_pylist()) == [7, 8]
            again.close()
        with AsyncTransform(gives, N, ordered=ordered) as merged:
            merged.restore(saved, saved)
            out = merged.drain()
            assert sum(table.num_rows for table in rows_of(out)) == 4 and out[-1] == Watermark(0, 5)


def test_a_transform_needs_room_for_a_call() -> None:
    with pytest.raises(Unsupported, match="at least 1"):
        AsyncTransform(gives, N, concurrency=0)


EVENT = pa.schema([("t", pa.int64()), ("k", pa.string()), ("x", pa.float64()), ("d", pa.decimal128(5, 2))])
CALLS = {
    "rows": Call("count"),
    "xs": Call("count", "x"),
    "sum": Call("sum", "x"),
    "avg": Call("avg", "x"),
    "low": Call("min", "k"),
    "high": Call("max", "t"),
    "dec": Call("sum", "d"),
}


def windows() -> WindowAggregate:
    return WindowAggregate(EVENT, times=["t"], size=5, offset=2, group_by=["k"], calls=CALLS)


def recomputed(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    groups: dict[tuple[int, str | None], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(((row["t"] - 2) // 5 * 5 + 2, row["k"]), []).append(row)
    result: Counter[tuple[Any, ...]] = Counter()
    for (start, k), members in groups.items():
        xs = [row["x"] for row in members if row["x"] is not None]
        ds = [row["d"] for row in members if row["d"] is not None]
        total, mean = (sum(xs), sum(xs) / len(xs)) if xs else (None, None)
        values: tuple[Any, ...] = (start, start + 5, k, len(members), len(xs), total, mean)
        values += (k, max(row["t"] for row in members), sum(ds) if ds else None)
        result[values] += 1
    return result


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "t": st.integers(0, 30),
            "k": st.sampled_from(["a", "b", None]),
            "x": st.one_of(st.none(), st.integers(-4, 4).map(float)),
            "d": st.one_of(st.none(), st.integers(-99, 99).map(lambda cents: Decimal(cents).scaleb(-2))),
        }
    ),
    max_size=8,
)


@settings(max_examples=12 * TIMES if IS_DEEP else 5)
@given(st.lists(st.tuples(ROWS, st.integers(0, 6)), max_size=6), st.integers(0, 6))
def test_windows_equal_recomputation(batches: list[tuple[list[dict[str, Any]], int]], cut: int) -> None:
    operator = windows()
    accepted: list[dict[str, Any]] = []
    found: Counter[tuple[Any, ...]] = Counter()
    reached = -1
    for number, (rows, rise) in enumerate([*batches, ([], 100)]):
        if number == cut:
            saved = operator.snapshot()
            operator = windows()
            operator.restore(saved)
        accepted += [row for row in rows if row["t"] >= reached]
        out = operator.rows(0, pa.Table.from_pylist(rows, schema=EVENT))
        if rise:
            reached += rise
            out += operator.watermark(0, 0, reached)
        for table in rows_of(out):
            found.update(tuple(row.values()) for row in table.to_pylist())
    assert found == recomputed(accepted)
    assert operator.snapshot()["windows"].num_rows == 0


def test_runs_of_windows_expire() -> None:
    operator = windows()
    for at in range(40):
        operator.rows(0, pa.Table.from_pylist([{"t": at, "k": "a"}], schema=EVENT))
        operator.watermark(0, 0, at + 1)
    assert operator._state._running.files <= 10


def test_windows_of_timestamps_are_timestamps() -> None:
    kind = pa.timestamp("us", tz="UTC")
    schema = pa.schema([("t", kind)])
    operator = WindowAggregate(schema, times=["t"], size=60_000_000, calls={"n": Call("count")})
    operator.rows(0, pa.table({"t": pa.array([61_000_000], pa.int64()).view(kind)}))
    (table,) = rows_of(operator.watermark(0, 0, 120_000_000))
    assert table.schema.field("window_start").type == kind
    assert table.column("window_start").cast(pa.int64()).to_pylist() == [60_000_000]


def test_windows_refuse_what_they_cannot_do() -> None:
    with pytest.raises(Unsupported, match="`median` of x is not an aggregate"):
        WindowAggregate(EVENT, times=["t"], size=5, calls={"m": Call("median", "x")})
    with pytest.raises(Unsupported, match="`sum` of no column"):
        WindowAggregate(EVENT, times=["t"], size=5, calls={"m": Call("sum")})
    with pytest.raises(TypeMismatch, match="`k` is string, and cannot be summed"):
        WindowAggregate(EVENT, times=["t"], size=5, calls={"m": Call("sum", "k")})
    with pytest.raises(TypeMismatch, match="`t` is int64, `u` is int32"):
        WindowAggregate(EVENT.append(pa.field("u", pa.int32())), times=["t", "u"], size=5, calls={})
    for size, slide in ((0, None), (5, 0), (5, 6)):
        with pytest.raises(Unsupported, match="at least 1, and the slide is not longer"):
            WindowAggregate(EVENT, times=["t"], size=size, slide=slide, calls={})
    plain: dict[str, Any] = {"times": ["t"], "size": 5, "calls": {}}
    options: list[dict[str, Any]] = [{"times": ["nope"]}, {"group_by": ["nope"]}, {"calls": {"n": Call("max", "nope")}}]
    for option in options:
        with pytest.raises(UnknownName, match="there is no column `nope`"):
            WindowAggregate(EVENT, **(plain | option))
    with pytest.raises(TypeMismatch, match="`k`, which is the time of an input, has no times"):
        WindowAggregate(EVENT, times=["k"], size=5, calls={})
    operator = windows()
    operator.rows(0, pa.Table.from_pylist([{"t": 1, "k": "a"}], schema=EVENT))
    with pytest.raises(StateError, match="have the same group"):
        windows().restore(operator.snapshot(), operator.snapshot())
    with pytest.raises(StateError, match="other groups or aggregates"):
        WindowAggregate(EVENT, times=["t"], size=5, calls=CALLS).restore(operator.snapshot())


def test_what_is_no_snapshot_or_no_time_is_refused() -> None:
    for operator in (Operator(), windows(), AsyncTransform(gives, N)):
        with pytest.raises(StateError, match=f"not a snapshot of a {type(operator).__name__}"):
            operator.restore({"x": 1})
        with pytest.raises(TypeMismatch, match=r"the time of a watermark is 1\.5"):
            operator.watermark(0, 0, 1.5)  # type: ignore[arg-type]
    with pytest.raises(StateError, match=r"2 input\(s\) cannot be restored to 1"):
        Operator().restore(Operator(2).snapshot())


@settings(max_examples=12 * TIMES if IS_DEEP else 5)
@given(st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 6)), max_size=6), st.integers(1, 7))
def test_hopping_windows_equal_recomputation(batches: list[tuple[list[int], int]], slide: int) -> None:
    schema = pa.schema([("t", pa.int64())])
    hops = WindowAggregate(schema, times=["t"], size=7, slide=slide, offset=2, calls={"n": Call("count")})
    found: Counter[int] = Counter()
    expected: Counter[int] = Counter()
    reached = -1
    for times, rise in [*batches, ([], 100)]:
        expected.update(
            start for t in times if t >= reached for start in range(2 - 70 * slide, 31, slide) if start <= t < start + 7
        )
        out = hops.rows(0, pa.table({"t": times}, schema=schema))
        again = WindowAggregate(schema, times=["t"], size=7, slide=slide, offset=2, calls={"n": Call("count")})
        again.restore(hops.snapshot())
        reached, hops = reached + rise, again
        out += hops.watermark(0, 0, reached)
        marks = {message.key: message.time for message in out if isinstance(message, Watermark)}
        for row in (row for table in rows_of(out) for row in table.to_pylist()):
            found[row["window_start"]] += row["n"]
            assert row["window_end"] == row["window_start"] + 7 <= reached
            assert row["window_start"] < marks[0] and row["window_end"] < marks[1]
    assert found == expected
