"""Plays traces of the keyed-watermarks document on `rejoinder.core`, and says what a step is as the data writes it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from rejoinder.core import (
    AsyncTransform,
    Call,
    Idle,
    JoinCondition,
    LateRows,
    Message,
    Rows,
    StreamJoin,
    Watermark,
    WindowAggregate,
)
from rejoinder.core.async_queue import Call as QueuedCall
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.watermarks.coalescer import Emitted

DATA = Path(__file__).parent.parent / "data" / "keyed_watermarks"
_READ: dict[str, Any] = yaml.safe_load((DATA / "traces.yaml").read_text(encoding="utf-8"))
TRACES: list[dict[str, Any]] = _READ["traces"]
CHECKS: list[dict[str, Any]] = _READ["sequence_checks"]
REQUIREMENTS: list[dict[str, Any]] = yaml.safe_load((DATA / "requirements.yaml").read_text(encoding="utf-8"))[
    "requirements"
]
ITEM = pa.schema([("item", pa.string())])


def trace(name: str) -> dict[str, Any]:
    """The trace of a name."""
    (found,) = [each for each in TRACES if each["id"] == name]
    return found


def of_kind(kind: str) -> list[dict[str, Any]]:
    """The traces of a kind; there are some."""
    found = [each for each in TRACES if each["kind"] == kind]
    assert found, f"no trace is of kind {kind}"
    return found


def items(*names: str) -> pa.Table:
    """Rows of the one column that traces without times have."""
    return pa.table({"item": list(names)}, schema=ITEM)


def shown(messages: Iterable[Message] | Emitted) -> list[dict[str, Any]]:
    """Messages as the data writes them, rows one by one."""
    result: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, Watermark):
            result.append({"watermark": {"key": message.key, "ts": message.time}})
        elif isinstance(message, Idle):
            result.append({"idle": {"key": 0}})
        elif isinstance(message, Rows):
            rows = message.table.to_pylist()
            result += [
                {"item": row["item"]} if message.table.schema.names == ["item"] else {"row": row} for row in rows
            ]
        else:
            assert isinstance(message, LateRows)
            result += [{"late": row} for row in message.table.to_pylist()]
    return result


def a_window(**more: Any) -> WindowAggregate:
    """Counts in windows of 5, by column `t`."""
    schema = pa.schema([("t", pa.int64()), ("u", pa.int64()), ("v", pa.int64())])
    options: dict[str, Any] = {"times": ["t"], "size": 5, "calls": {"n": Call("count")}}
    return WindowAggregate(schema, **(options | more))


def a_join(left: dict[str, int], right: dict[str, int]) -> StreamJoin:
    """A join of times within 5 of each other; the first of each side bound each other."""
    schemas = tuple(pa.schema([(name, pa.int64()) for name in side]) for side in (left, right))
    (a, of_a), (b, of_b) = next(iter(left.items())), next(iter(right.items()))
    text = f'"{a}" BETWEEN "{b}" - 5 AND "{b}" + 5'
    postpone = {of_a: {of_b: 5}, of_b: {of_a: 5}}
    condition = text_expression(text, pa.bool_(), (a, b))
    return StreamJoin(JoinCondition("INNER", (schemas[0], schemas[1]), (left, right), postpone, condition))


class Service:
    """A service that answers when it is told to, and the transform that asks it."""

    def __init__(self, *, ordered: bool) -> None:
        self.transform = AsyncTransform(self._ask, ITEM, ordered=ordered)
        self._asked: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = {}
        self._known = threading.Condition()

    async def _ask(self, row: Mapping[str, Any]) -> dict[str, Any]:
        told = asyncio.Event()
        with self._known:
            self._asked[row["item"]] = asyncio.get_running_loop(), told
            self._known.notify_all()
        await told.wait()
        return dict(row)

    def answer(self, item: str) -> list[Message]:
        """Let the answer for an item arrive."""
        with self._known:
            assert self._known.wait_for(lambda: item in self._asked, timeout=30), "the service was never asked"
            loop, told = self._asked.pop(item)
        loop.call_soon_threadsafe(told.set)
        return self.transform.wait(timeout=30)

    def queue(self) -> list[str]:
        """What waits in the transform, as the data writes it."""
        return [
            f"{entry.row['item']}{'!' if entry.answered else '?'}"
            if isinstance(entry, QueuedCall)
            else f"wm{entry.key}({entry.time})"
            if isinstance(entry, Watermark)
            else "idle"
            for entry in self.transform.pending()
        ]

    def play(self, happening: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Let one step happen."""
        if "response" in happening:
            return shown(self.answer(happening["response"]))
        if "item" in happening:
            return shown(self.transform.rows(0, items(happening["item"])))
        mark = happening["watermark"]
        return shown(self.transform.watermark(0, mark["key"], mark["ts"]))


def violation(sequence_in: list[dict[str, Any]], sequence_out: list[dict[str, Any]]) -> str | None:
    """The rule that an output breaks: `monotonicity`, `overtaking` (an item on time becomes late), or None."""
    last: dict[int, int] = {}
    for entry in sequence_out:
        if "watermark" in entry:
            key, time = entry["watermark"]["key"], entry["watermark"]["ts"]
            if key in last and time <= last[key]:
                return "monotonicity"
            last[key] = time
    on_time = [times for times, is_late in _items(sequence_in) if not is_late]
    return "overtaking" if any(is_late and times in on_time for times, is_late in _items(sequence_out)) else None


def _items(sequence: list[dict[str, Any]]) -> list[tuple[dict[int, int], bool]]:
    last: dict[int, int] = {}
    result = []
    for entry in sequence:
        if "watermark" in entry:
            last[entry["watermark"]["key"]] = entry["watermark"]["ts"]
        elif "item" in entry:
            times = entry["item"]
            result.append((times, any(key in last and time < last[key] for key, time in times.items())))
    return result
