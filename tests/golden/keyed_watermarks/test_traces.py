"""Every trace of the document, step by step, on `rejoinder.core`; and whether output sequences are legal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rejoinder.core import Call, Idle, InputWatermarks, Operator, Union, Watermark, WatermarkCoalescer, WindowAggregate
from rejoinder.core.messages import rows_of
from rejoinder.errors import WatermarkRegress
from rejoinder.watermarks.coalescer import Emitted
from tests.golden.keyed_watermarks.played import CHECKS, ITEM, TRACES, Service, items, of_kind, shown, trace, violation


def by_id(traces: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", traces, ids=[case["id"] for case in traces])


@by_id(of_kind("coalescer"))
def test_coalescer(case: dict[str, Any]) -> None:
    merged = WatermarkCoalescer(case["inputs"])

    def play(happening: dict[str, Any]) -> list[dict[str, Any]]:
        at = happening["input"]
        if "watermark" in happening:
            return shown(merged.watermark(at, happening["watermark"]["key"], happening["watermark"]["ts"]))
        if "idle" in happening:
            return shown(merged.idle(at))
        return [{"item": happening["item"]}, *shown(merged.event(at))]

    for number, step in enumerate(case["steps"]):
        if step.get("fails") == "monotonicity":
            with pytest.raises(WatermarkRegress):
                play(step["in"])
        else:
            assert play(step["in"]) == step["out"], f"step {number + 1}"


@by_id(of_kind("coalescer"))
def test_union(case: dict[str, Any]) -> None:
    merged = Union(case["inputs"], ITEM)

    def play(happening: dict[str, Any]) -> list[dict[str, Any]]:
        at = happening["input"]
        if "watermark" in happening:
            return shown(merged.watermark(at, happening["watermark"]["key"], happening["watermark"]["ts"]))
        return shown(merged.idle(at) if "idle" in happening else merged.rows(at, items(happening["item"])))

    for number, step in enumerate(case["steps"]):
        if step.get("fails") == "monotonicity":
            with pytest.raises(WatermarkRegress):
                play(step["in"])
        else:
            assert play(step["in"]) == step["out"], f"step {number + 1}"


@by_id(of_kind("processor_input"))
def test_processor_input(case: dict[str, Any]) -> None:
    inputs = InputWatermarks([edge["upstream_instances"] for edge in case["edges"]])
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        mark = given["watermark"]
        delivered = inputs.watermark(given["edge"], mark["key"], mark["ts"], upstream=given["upstream"])
        calls = []
        for delivery in delivered:
            assert isinstance(delivery.message, Watermark)
            call: dict[str, Any] = {"call": "tryProcessWatermark(wm)"}
            if delivery.ordinal is not None:
                call = {"call": "tryProcessWatermark(ordinal, wm)", "ordinal": delivery.ordinal}
            calls.append(call | shown([delivery.message])[0])
        assert calls == step["out"], f"step {number + 1}"


@by_id(of_kind("simple_processor"))
def test_simple_processor(case: dict[str, Any]) -> None:
    forward = Operator()
    for step in case["steps"]:
        given = step["in"]
        if "item" in given:
            assert shown(forward.rows(0, items(given["item"]))) == step["out"]
        else:
            assert shown(forward.watermark(0, given["watermark"]["key"], given["watermark"]["ts"])) == step["out"]


@by_id(of_kind("async_ordered"))
def test_async_ordered(case: dict[str, Any]) -> None:
    service = Service(ordered=True)
    with service.transform:
        for number, step in enumerate(case["steps"]):
            assert service.play(step["in"]) == step["out"], f"step {number + 1}"
            assert service.queue() == step["queue"], f"step {number + 1}"


@by_id(of_kind("async_unordered"))
def test_async_unordered(case: dict[str, Any]) -> None:
    service = Service(ordered=False)
    with service.transform:
        for number, step in enumerate(case["steps"]):
            assert service.play(step["in"]) == step["out"], f"step {number + 1}"
            if number == 4 and "counts_after_step5" in case:
                assert counts(service) == case["counts_after_step5"]
        assert service.queue() == []


def counts(service: Service) -> list[dict[str, Any]]:
    """How many rows wait before each watermark, and after the last."""
    result: list[dict[str, Any]] = []
    pending = 0
    for entry in service.transform.pending():
        if isinstance(entry, Watermark):
            result.append({"before_wm": {"key": entry.key, "ts": entry.time}, "pending": pending})
            pending = 0
        else:
            pending += 1
    return [*result, {"before_wm": None, "pending": pending}]


@by_id(of_kind("window_aggregation"))
def test_window_aggregation(case: dict[str, Any]) -> None:
    keys, window = case["wm_keys"], case["window"]
    schema = pa.schema([(name, pa.int64()) for name in keys])
    start_key, end_key = 10, 11
    windows = WindowAggregate(
        schema,
        times=[window["time"]],
        size=window["size"],
        key=keys[window["time"]],
        group_by=["time2"],
        calls={"count": Call("count")},
        start_key=start_key,
        end_key=end_key,
    )
    reached: dict[int, int] = {}
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        if "item" in given:
            out = windows.rows(0, pa.Table.from_pylist([given["item"]], schema=schema))
        else:
            out = windows.watermark(0, given["watermark"]["key"], given["watermark"]["ts"])
        rows = [row for table in rows_of(out) for row in table.to_pylist()]
        wanted = [entry["row"] for entry in step["out"]]
        assert sorted(rows, key=str) == sorted(wanted, key=str), f"step {number + 1}"
        marks = [message for message in out if isinstance(message, Watermark)]
        assert out[len(out) - len(marks) :] == marks, "rows come before the watermarks that they must not miss"
        assert {mark.key for mark in marks} <= {start_key, end_key}, "no watermark but of window bounds"
        reached |= {mark.key: mark.time for mark in marks}
        limits = step.get("output_wm_constraint")
        if limits is not None:  # the highest value that makes no later window late: no unnecessary latency either
            assert reached == {start_key: limits["window_start"]["max"], end_key: limits["window_end"]["max"]}


@by_id(of_kind("dag"))
def test_dag(case: dict[str, Any]) -> None:
    dag: dict[str, list[str]] = case["dag"]
    at_input = {vertex: WatermarkCoalescer(inputs) for vertex, inputs in dag.items()}
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        passed: dict[str, list[dict[str, Any]]] = {vertex: [] for vertex in dag}

        def feed(origin: str, message: Watermark | Idle | None, passed: dict[str, Any] = passed) -> None:
            for vertex, inputs in dag.items():
                if origin not in inputs:
                    continue
                released: Emitted = []
                if isinstance(message, Watermark):
                    released = at_input[vertex].watermark(origin, message.key, message.time)
                elif isinstance(message, Idle):
                    released = at_input[vertex].idle(origin)
                else:
                    released = at_input[vertex].event(origin)
                passed[vertex] += shown(released)
                role = case["processor"].get(vertex)
                for each in released:
                    if role == "forward" or (role == "forward_idle" and isinstance(each, Idle)):
                        feed(vertex, each, passed)

        if "watermark" in given:
            feed(given["vertex"], Watermark(given["watermark"]["key"], given["watermark"]["ts"]))
        else:
            feed(given["vertex"], Idle() if "idle" in given else None)
        if not any(vertex.startswith("joinOuter") for vertex in dag):  # a join takes watermarks per input
            assert {vertex: out for vertex, out in passed.items() if out} == {
                vertex: out for vertex, out in step["out"].items() if out
            }, f"step {number + 1}"
        else:
            assert passed["joinInner"] == step["out"].get("joinInner", []), f"step {number + 1}"


@pytest.mark.parametrize("case", CHECKS, ids=[case["id"] for case in CHECKS])
def test_sequence(case: dict[str, Any]) -> None:
    assert violation(case["in"], case["out"]) == case["violates"]


def test_every_trace_is_played() -> None:
    kinds = {
        "coalescer",
        "processor_input",
        "simple_processor",
        "async_ordered",
        "async_unordered",
        "window_aggregation",
        "dag",
    }
    assert {case["kind"] for case in TRACES} == kinds
    assert trace("kw-coalesce")["inputs"] == 2
