"""Coalescing: the minimum over active inputs, checked against a recomputation; restarts; who holds a key back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import MissingInput, WatermarkRegress
from rejoinder.watermarks.coalescer import IDLE_TIME, Idle, Watermark, WatermarkCoalescer
from rejoinder.watermarks.input_watermarks import InputWatermarks
from rejoinder.watermarks.source_watermarks import SourceWatermarks

STEPS = st.lists(
    st.tuples(st.sampled_from(["watermark", "idle", "event"]), st.integers(0, 2), st.integers(0, 1), st.integers(1, 5)),
    max_size=40,
)


@given(STEPS)
def test_the_emitted_watermark_is_the_minimum_over_active_inputs(steps: list[tuple[str, int, int, int]]) -> None:
    merged = WatermarkCoalescer(3)
    sent: list[dict[int, int]] = [{}, {}, {}]
    idle = [False, False, False]
    highest: dict[int, int] = {}
    told_idle = False
    for what, at, key, rise in steps:
        if what == "watermark":
            sent[at][key] = sent[at].get(key, 0) + rise
            out = merged.watermark(at, key, sent[at][key])
        else:
            out = merged.idle(at) if what == "idle" else merged.event(at)
        idle[at] = what == "idle"
        active = [values for values, left_out in zip(sent, idle, strict=True) if not left_out]
        wanted: list[Watermark | Idle] = []
        for each in (0, 1):
            if active and all(each in values for values in active):
                low = min(values[each] for values in active)
                if low > highest.get(each, 0):
                    highest[each] = low
                    wanted.append(Watermark(each, low))
        if not active and not told_idle:
            wanted.append(Idle())
        told_idle = not active
        assert out == wanted


@given(STEPS, st.integers(0, 40))
def test_a_restart_changes_nothing(steps: list[tuple[str, int, int, int]], cut: int) -> None:
    straight, restarted = WatermarkCoalescer(3), WatermarkCoalescer(3)
    times: dict[tuple[int, int], int] = {}
    for number, (what, at, key, rise) in enumerate(steps):
        if number == cut:
            saved = json.loads(json.dumps(restarted.snapshot()))
            restarted = WatermarkCoalescer(3)
            restarted.restore(saved)
            assert restarted.snapshot() == saved
        if what == "watermark":
            times[at, key] = times.get((at, key), 0) + rise
            assert straight.watermark(at, key, times[at, key]) == restarted.watermark(at, key, times[at, key])
        elif what == "idle":
            assert straight.idle(at) == restarted.idle(at)
        else:
            assert straight.event(at) == restarted.event(at)


def test_a_regress_is_refused_and_changes_nothing() -> None:
    merged = WatermarkCoalescer(["a", "b"])
    merged.watermark("a", 3, 10)
    for time in (10, 9):
        with pytest.raises(WatermarkRegress, match=r"RJ207.*key 3 does not rise\nDetail: input 'a' sent \d+ after 10"):
            merged.watermark("a", 3, time)
    assert merged.watermark("b", 3, 12) == [Watermark(3, 10)]


def test_inputs_may_start_below_what_they_had_sent_before_a_restart() -> None:
    before = WatermarkCoalescer(1)
    before.watermark(0, 0, 15)
    after = WatermarkCoalescer(1)
    after.restore(before.snapshot())
    assert after.watermark(0, 0, 12) == []
    assert after.watermark(0, 0, 14) == [] and after.value(0) == 15
    with pytest.raises(WatermarkRegress, match="sent 13 after 14"):
        after.watermark(0, 0, 13)
    assert after.watermark(0, 0, 16) == [Watermark(0, 16)]


def test_of_several_snapshots_the_smallest_value_counts() -> None:
    saved = []
    for values in ({0: 15, 1: 11}, {0: 12}):
        each = WatermarkCoalescer(1)
        for key, time in values.items():
            each.watermark(0, key, time)
        if 1 in values:
            each.idle(0)
        saved.append(each.snapshot())
    restored = WatermarkCoalescer(1)
    restored.restore(*saved)
    assert (restored.value(0), restored.value(1), restored.is_idle) == (12, 11, False)


def test_the_input_that_holds_a_key_back() -> None:
    merged = WatermarkCoalescer(["a", "b", "c"])
    merged.watermark("a", 0, 5)
    merged.watermark("c", 0, 4)
    assert merged.blocked_by(0) == "b"
    merged.idle("b")
    assert merged.blocked_by(0) == "c" and merged.idle_inputs() == ("b",)
    merged.idle("a")
    merged.idle("c")
    assert merged.blocked_by(0) is None


def test_a_new_partition_holds_back_until_it_sends() -> None:
    merged = WatermarkCoalescer(["a"])
    assert merged.watermark("a", 0, 5) == [Watermark(0, 5)]
    merged.add("b")
    assert merged.watermark("a", 0, 7) == []
    assert merged.watermark("b", 0, 6) == [Watermark(0, 6)]


def test_an_unknown_input_is_named() -> None:
    with pytest.raises(MissingInput, match=r"no input 'orders-7'(.|\n)*did you mean `orders-0`"):
        WatermarkCoalescer(["orders-0", "clicks-0"]).idle("orders-7")
    with pytest.raises(MissingInput, match="no input 2"):
        InputWatermarks([1, 1]).watermark(2, 0, 1)
    with pytest.raises(MissingInput, match="no input 2"):
        InputWatermarks([1, 1]).idle(2)
    with pytest.raises(MissingInput, match="no input -1"):
        InputWatermarks([1, 1]).event(-1)


def test_an_input_is_idle_when_all_its_instances_are() -> None:
    inputs = InputWatermarks([2, 1])
    inputs.watermark(1, 0, 9)
    inputs.watermark(0, 0, 3, upstream=0)
    assert [(each.ordinal, each.message) for each in inputs.idle(0, upstream=1)] == [
        (0, Watermark(0, 3)),
        (None, Watermark(0, 3)),
    ]
    assert [(each.ordinal, each.message) for each in inputs.idle(0, upstream=0)] == [
        (0, Idle()),
        (None, Watermark(0, 9)),
    ]
    inputs.event(0, upstream=1)
    assert not inputs.edges[0].is_idle and inputs.whole.idle_inputs() == ()
    restored = InputWatermarks([2, 1])
    restored.restore(json.loads(json.dumps(inputs.snapshot())))
    assert restored.snapshot() == inputs.snapshot()


def test_an_instance_that_returns_below_the_emitted_watermark_makes_its_input_active() -> None:
    inputs = InputWatermarks([1, 1])
    inputs.watermark(0, 0, 5)
    inputs.idle(0)
    assert inputs.watermark(0, 1, IDLE_TIME) == []
    inputs.watermark(1, 0, 9)
    assert [each.ordinal for each in inputs.watermark(0, 0, 6)] == [0]
    assert inputs.whole.idle_inputs() == ()


def test_silence_is_counted_per_partition() -> None:
    now = [0.0]
    source = SourceWatermarks(["p", "q"], lags={0: 0}, idle_after=5, clock=lambda: now[0])
    source.events("p", {0: 10})
    now[0] = 4
    source.events("p", {0: 12})
    assert source.tick() == []
    now[0] = 5
    assert source.tick() == [Watermark(0, 12)]
    now[0] = 9
    assert source.tick() == [Idle()]
    assert source.tick() == []
    saved = source.snapshot()
    again = SourceWatermarks(["p", "q"], lags={0: 0}, idle_after=None, clock=lambda: now[0])
    again.restore(saved)
    assert again.tick() == [] and {**again.snapshot(), "seen": saved["seen"]} == saved
    again.restore(saved, since=3)
    assert again.snapshot()["seen"] == [["p", 4], ["q", 3]], "silence before that was not theirs"
