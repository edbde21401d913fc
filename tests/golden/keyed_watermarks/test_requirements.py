"""Each line of the requirements has a test that names it: a table from id to tests, and those that no trace covers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rejoinder.core import (
    AsyncTransform,
    Call,
    Idle,
    LateRows,
    Message,
    Operator,
    SourceWatermarks,
    Union,
    Watermark,
    WatermarkCoalescer,
)
from rejoinder.core.messages import rows_of
from rejoinder.watermarks.coalescer import IDLE_TIME
from tests.golden.keyed_watermarks import test_in_sql, test_monotone_output, test_traces
from tests.golden.keyed_watermarks.played import (
    CHECKS,
    ITEM,
    REQUIREMENTS,
    TRACES,
    a_join,
    a_window,
    items,
    of_kind,
    shown,
    trace,
)
from tests.golden.named_tests import check_named_test

TESTS: dict[str, list[str]] = {
    "KWM-DEF-01": ["test_late_is_strictly_below"],
    "KWM-DEF-02": ["test_watermarks_of_operators_rise_strictly_for_each_key"],
    "KWM-DEF-03": ["kw-coalesce-two-keys", "test_keys_are_independent_integers"],
    "KWM-COA-01": ["kw-coalesce"],
    "KWM-COA-02": ["kw-coalesce", "kw-union-key-on-one-input-only"],
    "KWM-COA-03": ["kw-coalesce"],
    "KWM-COA-04": ["kw-coalesce-two-keys", "kw-coalesce-key0-interleaved-as-doc"],
    "KWM-COA-05": ["kw-per-ordinal-join", "kw-per-ordinal-and-coalesced"],
    "KWM-RUL-01": ["kw-monotonic-equal", "kw-monotonic-lower", "kw-check-repeat"],
    "KWM-RUL-02": ["kw-monotonic-other-key-lower", "kw-check-keys-independent"],
    "KWM-RUL-03": ["kw-check-overtake", "kw-check-overtake-other-key", "kw-check-forward-ok"],
    "KWM-RUL-04": ["kw-async-ordered-empty-queue", "kw-check-delayed-ok"],
    "KWM-RUL-05": ["kw-check-drop-ok"],
    "KWM-RUL-06": ["kw-async-ordered", "kw-async-unordered", "kw-window-agg"],
    "KWM-GEN-01": ["test_a_source_follows_its_newest_item_at_a_lag"],
    "KWM-GEN-02": ["kw-idle-five-partitions", "kw-no-idle-five-partitions", "test_a_source_coalesces_its_partitions"],
    "KWM-API-01": ["kw-per-ordinal-and-coalesced"],
    "KWM-API-02": ["kw-per-ordinal-join"],
    "KWM-API-03": ["test_an_operator_chooses_what_it_overrides"],
    "KWM-API-04": ["kw-per-ordinal-join", "test_different_keys_per_input_are_never_coalesced"],
    "KWM-API-05": ["kw-forward-simple"],
    "KWM-API-06": ["test_built_in_operators_look_at_the_key"],
    "KWM-UNI-01": ["kw-union-same-key"],
    "KWM-UNI-02": ["kw-union-key-on-one-input-only"],
    "KWM-ASY-01": ["kw-async-ordered"],
    "KWM-ASY-02": ["kw-async-ordered"],
    "KWM-ASY-03": ["kw-async-unordered", "kw-async-unordered-held-by-oldest"],
    "KWM-WIN-01": ["kw-window-agg"],
    "KWM-WIN-02": ["test_each_input_has_its_own_time"],
    "KWM-WIN-03": ["kw-window-agg"],
    "KWM-WIN-04": ["kw-window-agg"],
    "KWM-WIN-05": ["test_a_grouping_column_gets_no_watermark"],
    "KWM-WIN-06": ["kw-window-agg"],
    "KWM-IDL-01": ["kw-idle-excludes-input"],
    "KWM-IDL-02": ["kw-idle-cleared-by-event", "kw-idle-excludes-input"],
    "KWM-IDL-03": ["kw-idle-excludes-input"],
    "KWM-IDL-04": ["kw-idle-ignores-key", "kw-idle-event-activates-all-keys", "kw-union-key-on-one-input-other-idle"],
    "KWM-IDL-05": ["test_idle_messages_have_no_key"],
    "KWM-IDL-06": ["kw-idle-all"],
    "KWM-IDL-07": ["test_the_largest_time_is_idle_and_no_watermark"],
    "KWM-IDL-08": ["test_a_silent_source_is_idle_after_60_seconds"],
    "KWM-IDL-09": ["kw-idle-keeps-last-value"],
    "KWM-IDL-10": ["kw-idle-all-unequal"],
    "KWM-IDL-11": ["kw-dag-merge", "kw-dag-two-scans", "test_a_union_over_an_idle_join_goes_on"],
    "KWM-IDL-12": ["kw-dag-join-idle", "test_an_idle_side_blocks_a_join"],
}


# On the Driver: traces are played there as well, by the tests of `test_in_sql`; these are further tests.
IN_SQL: dict[str, list[str]] = {
    "KWM-DEF-01": ["test_late_is_strictly_below"],
    "KWM-DEF-02": [
        "test_coalescer",
        "tests/features/time/test_partitions.py::test_watermarks_derived_from_rows_cannot_be_violated",
    ],
    "KWM-RUL-03": ["tests/oracle/test_time_bounds.py::test_the_end_is_the_batch_join_of_what_was_on_time"],
    "KWM-RUL-04": [
        "test_simple_processor",
        "tests/features/emission/test_emission.py::test_final_windows_are_emitted_once_in_the_epoch_that_makes_them_final",
    ],
    "KWM-RUL-05": ["test_window_aggregation"],
    "KWM-GEN-01": ["test_a_source_follows_its_newest_row_at_a_lag"],
    "KWM-API-06": ["test_simple_processor"],
    "KWM-ASY-01": ["test_watermarks_wait_for_answers"],
    "KWM-ASY-02": ["test_watermarks_wait_for_answers"],
    "KWM-ASY-03": ["test_watermarks_wait_for_answers"],
    "KWM-WIN-02": ["test_each_branch_has_its_own_time"],
    "KWM-WIN-05": [
        "tests/features/time/test_output_watermarks.py::test_an_aggregate_has_watermarks_at_window_bounds_alone"
    ],
    "KWM-IDL-08": [
        "tests/features/time/test_idleness.py::test_a_silent_partition_is_idle_after_the_timeout_and_not_before"
    ],
    "KWM-IDL-11": ["test_merges"],
    "KWM-IDL-12": ["test_a_join_of_an_idle_join"],
}
# What is said of methods to override and of messages between operators; nothing of it is seen in SQL.
OF_THE_OPERATOR = {"KWM-API-03", "KWM-IDL-05", "KWM-IDL-07"}


def test_every_requirement_is_tested_in_sql_too() -> None:
    played = {case["id"] for case in TRACES}
    for requirement, tests in TESTS.items():
        found = [name for name in tests if name in played] + IN_SQL.get(requirement, [])
        assert bool(found) == (requirement not in OF_THE_OPERATOR), requirement
    kinds = {case["kind"] for case in TRACES} - {"async_ordered", "async_unordered", "dag"}
    assert all(callable(vars(test_in_sql).get(f"test_{kind}")) for kind in kinds)
    for requirement, tests in IN_SQL.items():
        for name in tests:
            check_named_test(requirement, name, [test_in_sql])


def test_every_requirement_has_tests_that_are_there() -> None:
    assert list(TESTS) == [each["id"] for each in REQUIREMENTS]
    played = [case["id"] for case in (*TRACES, *CHECKS)]
    for requirement, tests in TESTS.items():
        assert tests, requirement
        for name in tests:
            check_named_test(requirement, name, [test_traces, test_monotone_output, sys.modules[__name__]])
    named = {name for tests in TESTS.values() for name in tests}
    for each in REQUIREMENTS:  # what the data names is what is run
        for name in played:
            if name in each["how_to_test"].replace(",", " ").replace(";", " ").replace(":", " ").split():
                assert name in named, f"{each['id']} names {name}"


def test_late_is_strictly_below() -> None:
    """KWM-DEF-01."""
    windows = a_window()
    windows.watermark(0, 0, 10)
    rows = pa.table({"t": [9, 10, None]}, schema=pa.schema([("t", pa.int64())]))
    (late,) = windows.rows(0, rows)
    assert isinstance(late, LateRows) and late.table.column("t").to_pylist() == [9, None]
    out = windows.watermark(0, 0, 15)
    assert [table.to_pylist() for table in rows_of(out)] == [[{"window_start": 10, "window_end": 15, "n": 1}]]


def test_keys_are_independent_integers() -> None:
    """KWM-DEF-03: any byte is a key."""
    merged = WatermarkCoalescer(1)
    for key in (-128, 0, 127):
        assert merged.watermark(0, key, 1000 - key) == [Watermark(key, 1000 - key)]


def test_a_source_follows_its_newest_item_at_a_lag() -> None:
    """KWM-GEN-01."""
    source = SourceWatermarks(1, lags={0: 3})
    assert [shown(source.events(0, {0: time})) for time in (10, 8, 12)] == [
        [{"watermark": {"key": 0, "ts": 7}}],
        [],
        [{"watermark": {"key": 0, "ts": 9}}],
    ]


def test_a_source_coalesces_its_partitions() -> None:
    """KWM-GEN-02."""
    source = SourceWatermarks(["p0", "p1"], lags={0: 1, 1: 0})
    assert source.events("p0", {0: 10, 1: 100}) == []
    assert source.events("p1", {0: 8, 1: 120}) == [Watermark(0, 7), Watermark(1, 100)]


class PerInput(Operator):
    def on_input_watermark(self, ordinal: int, watermark: Watermark) -> list[Message]:
        return [Watermark(10 * ordinal + watermark.key, watermark.time)]

    def on_watermark(self, watermark: Watermark) -> list[Message]:
        return []


class Together(Operator):
    def on_watermark(self, watermark: Watermark) -> list[Message]:
        return [Watermark(watermark.key, watermark.time - 1)]


def test_an_operator_chooses_what_it_overrides() -> None:
    """KWM-API-03: both ways, on both traces of calls."""
    for case in of_kind("processor_input"):
        upstream = [edge["upstream_instances"] for edge in case["edges"]]
        per_input, together = PerInput(upstream), Together(upstream)
        for step in case["steps"]:
            given, mark = step["in"], step["in"]["watermark"]
            place = {"upstream": given["upstream"]}
            calls = step["out"]
            assert per_input.watermark(given["edge"], mark["key"], mark["ts"], **place) == [
                Watermark(10 * call["ordinal"] + call["watermark"]["key"], call["watermark"]["ts"])
                for call in calls
                if "ordinal" in call
            ]
            assert together.watermark(given["edge"], mark["key"], mark["ts"], **place) == [
                Watermark(call["watermark"]["key"], call["watermark"]["ts"] - 1)
                for call in calls
                if "ordinal" not in call
            ]


def test_different_keys_per_input_are_never_coalesced() -> None:
    """KWM-API-04."""
    together = Together(2)
    assert [together.watermark(at, at, time) for at, time in ((0, 10), (1, 7), (0, 15), (1, 9))] == [[], [], [], []]


def test_built_in_operators_look_at_the_key() -> None:
    """KWM-API-06: key 1 at 20, then key 2 at 10."""

    async def same(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return row

    both = [Watermark(1, 20), Watermark(2, 10)]
    merged = Union(2, ITEM)
    merged.idle(1)
    for operator in (Operator(), merged):
        assert operator.watermark(0, 1, 20) + operator.watermark(0, 2, 10) == both
    for ordered in (True, False):
        with AsyncTransform(same, ITEM, ordered=ordered) as transform:
            out = transform.rows(0, items("e"))
            out += transform.watermark(0, 1, 20) + transform.watermark(0, 2, 10) + transform.drain()
            assert shown(out) == [{"item": "e"}, *shown(both)]
    windows = a_window(key=2, start_key=5, end_key=6)
    assert windows.watermark(0, 1, 20) == []
    assert windows.watermark(0, 2, 10) == [Watermark(5, 10), Watermark(6, 15)]
    joined = a_join({"a": 1}, {"b": 2})
    assert joined.watermark(0, 1, 20) + joined.watermark(1, 2, 10) == both


def test_each_input_has_its_own_time() -> None:
    """KWM-WIN-02."""
    windows = a_window(times=["t", "u"], group_by=["v"], calls={"n": Call("count"), "most": Call("max", "v")})
    windows.rows(0, pa.table({"t": [1, 7], "v": [1, 1]}))
    windows.rows(1, pa.table({"u": [3, 4], "v": [1, 2]}))
    assert windows.watermark(0, 0, 9) == []
    out = windows.watermark(1, 0, 5)
    rows = [row for table in rows_of(out) for row in table.to_pylist()]
    assert sorted(rows, key=lambda row: row["v"]) == [
        {"window_start": 0, "window_end": 5, "v": 1, "n": 2, "most": 1},
        {"window_start": 0, "window_end": 5, "v": 2, "n": 1, "most": 2},
    ]


def test_a_grouping_column_gets_no_watermark() -> None:
    """KWM-WIN-05: the minimum over open windows of a grouping column is left out on purpose."""
    windows = a_window(group_by=["u"], key=0, start_key=7, end_key=8)
    windows.rows(0, pa.table({"t": [1], "u": [100]}))
    out = windows.watermark(0, 1, 90) + windows.watermark(0, 0, 5) + windows.watermark(0, 1, 200)
    assert [message.key for message in out if isinstance(message, Watermark)] == [7, 8]


def test_the_largest_time_is_idle_and_no_watermark() -> None:
    """KWM-IDL-07."""
    merged = WatermarkCoalescer(2)
    merged.watermark(0, 0, 10)
    assert merged.watermark(1, 0, IDLE_TIME) == [Watermark(0, 10)]
    assert IDLE_TIME == 2**63 - 1 and merged.idle_inputs() == (1,)
    assert merged.watermark(1, 0, 12) == [] and merged.watermark(0, 0, 11) == [Watermark(0, 11)]


def test_a_silent_source_is_idle_after_60_seconds() -> None:
    """KWM-IDL-08."""
    now = [100.0]
    source = SourceWatermarks(1, lags={0: 0}, clock=lambda: now[0])
    source.events(0, {0: 5})
    now[0] = 159.999
    assert source.tick() == []
    now[0] = 160.0
    assert source.tick() == [Idle()]
    now[0] = 300.0
    assert source.tick() == []
    assert source.events(0, {0: 6}) == [Watermark(0, 6)]
    quick = SourceWatermarks(1, lags={0: 0}, idle_after=0.5, clock=lambda: now[0])
    now[0] += 0.5
    assert quick.tick() == [Idle()]


def test_a_union_over_an_idle_join_goes_on() -> None:
    """KWM-IDL-11: the trace kw-dag-merge, with a join and a union of ours in its vertices."""
    case = trace("kw-dag-merge")
    join = a_join({"a": 0}, {"b": 1})
    merge = Union(2, ITEM)
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        if given["vertex"] == "scan3":
            out = merge.watermark(1, given["watermark"]["key"], given["watermark"]["ts"])
        else:
            (idle,) = [*join.idle(case["dag"]["join"].index(given["vertex"])), None][:1]
            assert shown([] if idle is None else [idle]) == step["out"]["join"], f"step {number + 1}"
            out = [] if idle is None else merge.idle(0)
        assert shown(out) == step["out"]["merge"], f"step {number + 1}"


def test_an_idle_side_blocks_a_join() -> None:
    """KWM-IDL-12: the trace kw-dag-join-idle, with joins of ours in its vertices."""
    case = trace("kw-dag-join-idle")
    inner = a_join({"a": 0}, {"b": 1})
    outer = a_join({"b": 1, "a": 0}, {"r.time": 2})
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        if given["vertex"] == "scan3":
            if "item" in given:
                assert outer.rows(1, pa.Table.from_pylist([given["item"]])) == []
            else:  # what is received goes on as far as rows kept allow, and frees none of them
                out = outer.watermark(1, given["watermark"]["key"], given["watermark"]["ts"])
                assert out == [Watermark(2, 5)]
        else:
            out = inner.idle(case["dag"]["joinInner"].index(given["vertex"]))
            assert shown(out) == step["out"]["joinInner"], f"step {number + 1}"
            if out:
                assert outer.idle(0) == []
        state = step.get("joinOuter_state", {})
        assert outer.buffer(1).num_rows == state.get("buffer_from_scan3", 1), f"step {number + 1}"
        if "idle_inputs" in state:
            assert outer.idle_inputs() == (0,)
    assert outer.watermark(0, 1, 20) == [Watermark(1, 20), Watermark(2, 50)]
    assert outer.buffer(1).num_rows == 1, "the side that is back frees what is over"


def test_transforms_run_side_by_side_up_to_their_limit() -> None:
    """Item 4 of the issue: bounded concurrency."""
    running, most = [0], [0]

    async def slow(row: Mapping[str, Any]) -> Mapping[str, Any]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.005)
        running[0] -= 1
        return row

    with AsyncTransform(slow, ITEM, concurrency=4) as transform:
        names = [f"e{at}" for at in range(40)]
        out = transform.rows(0, items(*names)) + transform.drain()
    assert most[0] == 4
    assert [entry["item"] for entry in shown(out)] == names
    assert trace("kw-async-ordered")["kind"] == "async_ordered"
