"""Every trace, check, pipeline and snapshot case of the join's document, step by step, on `rejoinder.core`."""

from __future__ import annotations

import math
from inspect import isfunction
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.core import Message, StreamJoin, Watermark, WatermarkCoalescer
from rejoinder.core.stream_join import USED, Formula
from rejoinder.errors import LimitReached, WatermarkRegress
from tests.golden.hazelcast_join.core_joins import GOLDEN, condition, feed, play, shown, trace_join, value, wanted

FORMULAS: tuple[Formula, Formula] = ("min_buffer", "wm_state")
FAILURES = {"monotonicity": WatermarkRegress, "accumulation_limit": LimitReached}
DEFECT = "hz-ft-left-unfixed"
TRACES = [trace for trace in GOLDEN["traces"] if trace["id"] != DEFECT]
L_AND_R: dict[str, Any] = {
    "kind": "LEFT",
    "condition": "l.time = r.time",
    "inputs": [
        {"name": "l", "columns": ["l.id", "l.time"], "wm": [{"key": 0, "column": "l.time"}]},
        {"name": "r", "columns": ["r.id", "r.time"], "wm": [{"key": 1, "column": "r.time"}]},
    ],
    "postpone_time_map": {0: {1: 0}, 1: {0: 0}},
}


def by_id(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def restarted(join: StreamJoin, fresh: StreamJoin) -> StreamJoin:
    fresh.restore(join.snapshot())
    return fresh


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("on", [False, True], ids=["condition", "keys"])
@by_id(TRACES)
def test_trace(case: dict[str, Any], on: bool, formula: Formula) -> None:
    join = trace_join(case, formula, on=on)
    for number, step in enumerate(case["steps"]):
        where = f"step {number + 1}"
        if "restart" in step["in"]:
            join = restarted(join, trace_join(case, formula, on=on))
        elif "fails" in step:
            before = join.snapshot()
            with pytest.raises(FAILURES[step["fails"]]):
                play(join, step["in"])
            assert join.snapshot() == before
        else:
            other = step.get(f"out_{formula}_formula") if formula != case["formula"] else None
            out = shown(play(join, step["in"]))
            late = [entry for entry in out if "late" in entry]
            assert len(late) == (1 if step.get("dropped") == "late" else 0), where
            rest = [entry for entry in out if entry not in late]
            assert rest == wanted(join, step["out"] if other is None else other), where
        check_state(join, step, where)


def check_state(join: StreamJoin, step: dict[str, Any], where: str) -> None:
    for ordinal, side in enumerate(("left", "right")):
        if side in step.get("buffer", {}):
            names = join._join.schemas[ordinal].names
            held = join.buffer(ordinal).to_pylist()
            entries = step["buffer"][side]
            assert [{name: row[name] for name in names} for row in held] == [
                {name: value(entry["row"].get(name)) for name in names} for entry in entries
            ], where
            flags = [(row[USED], entry["used"]) for row, entry in zip(held, entries, strict=True) if "used" in entry]
            assert all(here == there for here, there in flags), where
    if "wm_state" in step:
        limits = {k: {g: -math.inf if v is None else v for g, v in of.items()} for k, of in join.limits().items()}
        assert limits == step["wm_state"], where


def test_the_defect_of_the_document_does_not_happen() -> None:
    """HZJ-FT-03: what was late before the restart is late after it, and no NULL stands for a row that was there."""
    (case,) = [trace for trace in GOLDEN["traces"] if trace["id"] == DEFECT]
    join = trace_join(case, "min_buffer")
    for step in case["steps"][:3]:
        assert shown(play(join, step["in"])) == wanted(join, step["out"])
    join = restarted(join, trace_join(case, "min_buffer"))
    assert [entry for entry in shown(play(join, case["steps"][4]["in"])) if "late" in entry]
    assert not [entry for entry in shown(play(join, case["steps"][5]["in"])) if "padded" in entry]


def test_watermarks_may_start_lower_after_a_restart() -> None:
    """HZJ-FT-03, HZJ-FT-10: the last received watermark is what is kept."""
    join = StreamJoin(condition(L_AND_R, [], on=True))
    join.watermark(0, 0, 15)
    join = restarted(join, StreamJoin(condition(L_AND_R, [], on=True)))
    assert join.watermark(0, 0, 12) == []
    assert "late" in shown(feed(join, 0, {"l.id": "l", "l.time": 14}))[0]
    assert join.received() == {0: 15}


@by_id(GOLDEN["checks"])
def test_check(case: dict[str, Any]) -> None:
    """HZJ-PRC-15, HZJ-PRC-16."""
    (trace,) = [trace for trace in GOLDEN["traces"] if trace["id"] == case["join"]]
    for on in (False, True):
        join = trace_join(trace, "min_buffer", on=on)
        (given,) = case["given"].values()
        assert feed(join, 1 - case["probe"]["ordinal"], given) == []
        assert bool(feed(join, case["probe"]["ordinal"], case["probe"]["item"])) == case["joins"]


@pytest.mark.parametrize("formula", FORMULAS)
@by_id(GOLDEN["pipelines"])
def test_pipeline(case: dict[str, Any], formula: Formula) -> None:
    """HZJ-BND-09: a join of joins; the output of one is the input of the other."""
    joins = {name: StreamJoin(condition(join, [], on=False), formula=formula) for name, join in case["joins"].items()}
    for number, step in enumerate(case["steps"]):
        outs: dict[str, list[Message]] = {name: [] for name in joins}

        def send(origin: str, message: Message | dict[str, Any], outs: dict[str, list[Message]] = outs) -> None:
            for name, inputs in case["wiring"].items():
                if origin not in inputs:
                    continue
                ordinal = inputs.index(origin)
                if isinstance(message, dict):
                    out = feed(joins[name], ordinal, message)
                elif isinstance(message, Watermark):
                    out = joins[name].watermark(ordinal, message.key, message.time)
                else:
                    out = joins[name].rows(ordinal, message.table)  # type: ignore[union-attr]
                outs[name] += out
                for each in out:
                    send(name, each, outs)

        given = step["in"]
        mark = given.get("watermark")
        send(given["source"], given["item"] if mark is None else Watermark(mark["key"], mark["ts"]))
        for name, join in joins.items():
            other = step.get(f"{name}_out_{formula}_formula") if formula != case["formula"] else None
            out = step[f"{name}_out"] if other is None else other
            assert shown(outs[name]) == wanted(join, out), f"step {number + 1}, {name}"


def snapshot_case(name: str) -> dict[str, Any]:
    (case,) = [case for case in GOLDEN["snapshot_cases"] if case["id"] == name]
    assert isinstance(case, dict)
    return case


@pytest.mark.parametrize("formula", FORMULAS)
def test_watermarks_across_instances(formula: Formula) -> None:
    """HZJ-FT-07, HZJ-FT-11: by `wm_state` all instances hand on the same watermarks, whatever rows they hold."""
    case = snapshot_case("hz-sn-wm-equal-across-processors")
    joins = [
        StreamJoin(condition(L_AND_R, [], on=True), formula=formula, instance=at, instances=case["processors"])
        for at in range(case["processors"])
    ]
    merged = WatermarkCoalescer(len(joins))
    for number, step in enumerate(case["steps"]):
        given, out = step["in"], step[formula]
        coalesced: list[Any] = []
        for at, join in enumerate(joins):
            messages: list[Message] = []
            if given.get("all"):
                mark = given["watermark"]
                messages = join.watermark(mark["key"], mark["key"], mark["ts"])
            elif given["proc"] == at:
                messages = feed(join, given["ordinal"], given["item"])
            assert shown(messages) == wanted(join, out[f"p{at}"]), f"step {number + 1}"
            for message in messages:
                if isinstance(message, Watermark):
                    coalesced += merged.watermark(at, message.key, message.time)
        assert shown(coalesced) == out["coalesced"], f"step {number + 1}"
        if number == 1:
            assert [join.emitted() for join in joins] == case["last_emitted_after_step2"][formula]


def spread(sample: StreamJoin, joins: list[StreamJoin], rows: list[tuple[int, dict[str, Any]]]) -> None:
    """Send rows to the instances that they belong to."""
    for ordinal, row in rows:
        table = pa.Table.from_pylist([row], schema=sample._join.schemas[ordinal])
        for join, part in zip(joins, sample.routed(ordinal, table, len(joins)), strict=True):
            join.rows(ordinal, part)


def test_snapshots_of_an_equi_join_are_repartitioned() -> None:
    """HZJ-FT-04."""
    case = snapshot_case("hz-sn-equi-partitioned")
    columns = {"l": ["l.k", "l.time"], "r": ["r.k", "r.time"]}
    inputs = [each | {"columns": columns[each["name"]]} for each in L_AND_R["inputs"]]
    equi = {**L_AND_R, "kind": "INNER", "condition": "l.k = r.k AND l.time = r.time", "inputs": inputs}

    def instances(count: int) -> list[StreamJoin]:
        return [StreamJoin(condition(equi, [], on=True), instance=at, instances=count) for at in range(count)]

    before, after = instances(case["processors_before"]), instances(case["processors_after"])
    content = [("lr".index(entry["side"]), entry["row"], entry["unused"]) for entry in case["content"]]
    spread(before[0], before, [(ordinal, row) for ordinal, row, _ in content])
    snapshots = [join.snapshot() for join in before]
    assert sum(table.num_rows for each in snapshots for table in each["rows"]) == case["snapshot_entry_count"]
    for join in after:
        join.restore(*snapshots)
    place: dict[str, set[int]] = {}
    found = []
    for at, join in enumerate(after):
        for ordinal in (0, 1):
            for row in join.buffer(ordinal).to_pylist():
                unused = not row.pop(USED)
                place.setdefault(row["lr"[ordinal] + ".k"], set()).add(at)
                found.append((ordinal, row, unused))
    assert sorted(found, key=str) == sorted(content, key=str)
    assert all(len(instances_of) == 1 for instances_of in place.values())


def test_a_broadcast_side_is_saved_once_and_restored_everywhere() -> None:
    """HZJ-FT-05, HZJ-FT-06, HZJ-FT-15: the preserved side is spread, so that a row is padded once."""
    case = snapshot_case("hz-sn-broadcast-unicast")
    theta = {
        **L_AND_R,
        "condition": "l.time BETWEEN r.time - 1 AND r.time + 1",
        "postpone_time_map": {0: {1: 1}, 1: {0: 1}},
    }

    def instances(count: int) -> list[StreamJoin]:
        return [StreamJoin(condition(theta, [], on=False), instance=at, instances=count) for at in range(count)]

    before, after = instances(case["processors_before"]), instances(case["processors_after"])
    for held in case["buffers_before"]:
        for ordinal, side in enumerate("lr"):
            for name in held[side]:
                feed(before[held["processor"]], ordinal, {f"{side}.id": name, f"{side}.time": 10 + 10 * ordinal})
    snapshots = [join.snapshot() for join in before]
    saved = [
        (by, "lr"[ordinal], row[f"{'lr'[ordinal]}.id"])
        for by, snapshot in enumerate(snapshots)
        for ordinal, table in enumerate(snapshot["rows"])
        for row in ([] if table is None else table.to_pylist())
    ]
    assert sorted(saved) == sorted((entry["by"], entry["side"], entry["row"]) for entry in case["snapshot_entries"])
    assert len(saved) == case["snapshot_entry_count"]
    for join in after:
        join.restore(*snapshots)
        assert join.buffer(1).column("r.id").to_pylist() == ["x", "y"]
    assert sorted(name for join in after for name in join.buffer(0).column("l.id").to_pylist()) == ["a", "b", "c"]
    padded = [entry["row"]["l.id"] for join in after for entry in shown(join.watermark(1, 1, 20)) if "padded" in entry]
    assert sorted(padded) == ["a", "b", "c"]


def test_of_several_watermarks_saved_the_smallest_is_restored() -> None:
    """HZJ-FT-08, HZJ-FT-12."""
    case = snapshot_case("hz-sn-restore-minimum")
    snapshots = []
    for saved in case["saved"]:
        join = StreamJoin(condition(L_AND_R, [], on=True))
        for key, time in saved["wm"].items():
            join.watermark(key, key, time)
        snapshots.append(join.snapshot())
    restored = StreamJoin(condition(L_AND_R, [], on=True))
    restored.restore(*snapshots)
    assert restored.received() == case["restored"]


def test_every_snapshot_case_is_played() -> None:
    players = [each for each in globals().values() if isfunction(each) and "snapshot_case" in each.__code__.co_names]
    played = {text for player in players for text in player.__code__.co_consts}
    assert {case["id"] for case in GOLDEN["snapshot_cases"]} <= played
