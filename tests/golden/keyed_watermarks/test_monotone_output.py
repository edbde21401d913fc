"""The rules of sequences on what the operators send: watermarks rise strictly, and none overtakes an item on time."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from rejoinder.core import AsyncTransform, Idle, Operator, SourceWatermarks, Union, Watermark, WatermarkCoalescer
from tests.deep import seeds
from tests.golden.keyed_watermarks.played import CHECKS, ITEM, a_join, a_window, items, shown, violation

OPERATORS: dict[str, Callable[[], Any]] = {
    "coalescer": lambda: WatermarkCoalescer(2),
    "forward": lambda: Operator(2),
    "union": lambda: Union(2, ITEM),
    "windows": lambda: a_window(times=["t", "u"], key=0, start_key=0, end_key=1),
    "join": lambda: a_join({"a": 0, "b": 1}, {"c": 2, "d": 3}),
}


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("name", list(OPERATORS))
def test_watermarks_of_operators_rise_strictly_for_each_key(name: str, seed: int) -> None:
    """KWM-DEF-02: also where an input that was idle returns below what was sent meanwhile."""
    pick, operator = random.Random(seed), OPERATORS[name]()
    received: dict[tuple[int, int], int] = {}
    sent: dict[int, int] = {}
    count = 0
    for _ in range(300):
        ordinal = pick.randrange(2)
        key = pick.randrange(2) + (2 * ordinal if name == "join" else 0)
        if pick.random() < 0.2:
            out = operator.idle(ordinal)
        else:
            received[ordinal, key] = received.get((ordinal, key), 0) + pick.randint(1, 9)
            out = operator.watermark(ordinal, key, received[ordinal, key])
        for mark in (message for message in out if isinstance(message, Watermark)):
            assert mark.time > sent.get(mark.key, -1), mark
            sent[mark.key] = mark.time
            count += 1
    assert count > 20


@pytest.mark.parametrize("ordered", [None, True, False])
@pytest.mark.parametrize("case", CHECKS, ids=[case["id"] for case in CHECKS])
def test_operators_break_no_rule(case: dict[str, Any], ordered: bool | None) -> None:
    """KWM-RUL-01, KWM-RUL-02, KWM-RUL-03, KWM-RUL-04, KWM-RUL-05: a union, and transforms that answer later."""

    async def same(row: Any) -> Any:
        return row

    operator = Union(1, ITEM) if ordered is None else AsyncTransform(same, ITEM, ordered=ordered)
    out = []
    for entry in case["in"]:
        if "item" in entry:
            out += operator.rows(0, items(json.dumps(entry["item"])))
        else:
            out += operator.watermark(0, entry["watermark"]["key"], entry["watermark"]["ts"])
    if isinstance(operator, AsyncTransform):
        with operator:
            out += operator.drain()
    sent = [
        {"item": {int(key): time for key, time in json.loads(entry["item"]).items()}} if "item" in entry else entry
        for entry in shown(out)
    ]
    assert [entry for entry in sent if "item" in entry] == [entry for entry in case["in"] if "item" in entry]
    assert violation(case["in"], sent) is None


def test_idle_messages_have_no_key() -> None:
    """KWM-IDL-05: an operator all of whose inputs are idle sends one idle message, whatever keys were idle."""
    assert dataclasses.fields(Idle) == ()
    for make in (lambda: WatermarkCoalescer(2), lambda: Operator(2), lambda: Union(2, ITEM)):
        operator: Any = make()
        operator.watermark(0, 3, 10)
        assert operator.idle(0) == [] and operator.idle(1) == [Idle()] and operator.idle(1) == []
    source = SourceWatermarks(1, lags={0: 0, 7: 0}, idle_after=1.0, clock=lambda: 5.0)
    assert [message for message in source.tick() if isinstance(message, Watermark)] == []
