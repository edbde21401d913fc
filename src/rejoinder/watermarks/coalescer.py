"""Coalesce keyed watermarks: the watermark of a stream with several inputs is the minimum over them, key by key.

Invariants:
- the emitted value of a key is the minimum over the inputs that are not idle, and rises strictly. It is emitted as soon
  as every such input has sent the key, and never repeated;
- idleness belongs to an input, not to a key: an idle input is ignored for all keys until its next event or watermark,
  then counts with the last value that it sent. An emitted value is not taken back for an input that returns late;
- the stream is idle only while all inputs are idle; one message says so.

Pure state over integers, without clock or rows. Cost: O(inputs) per watermark, O(inputs × keys) per idle message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder.errors import MissingInput, TypeMismatch, WatermarkRegress, near_misses

IDLE_TIME = (1 << 63) - 1
"""A watermark with this time encodes an idle message."""

Input = int | str


@dataclass(frozen=True)
class Watermark:
    """Promises that no later row has a time below `time` in the column of this key."""

    key: int
    time: int


@dataclass(frozen=True)
class Idle:
    """The stream sends no rows for now: downstream must not wait for its watermarks."""


Emitted = list[Watermark | Idle]


@dataclass
class _State:
    """The state of an input."""

    idle: bool = False
    sent: dict[int, int] = field(default_factory=dict)
    """Watermark by key since the start."""
    floor: dict[int, int] = field(default_factory=dict)
    """Watermark by key from before a restart. The input may start again below it."""

    def value(self, key: int) -> int | None:
        return max((values[key] for values in (self.sent, self.floor) if key in values), default=None)

    def values(self) -> dict[int, int]:
        """Return the watermark by key, sent now or before the restart."""
        latest = dict(self.floor)
        for key, value in self.sent.items():
            latest[key] = max(value, latest.get(key, value))
        return latest


class WatermarkCoalescer:
    """Coalesces the watermarks of inputs: streams of a union, upstream instances, or partitions of a source.

    >>> union = WatermarkCoalescer(2)
    >>> union.watermark(0, key=0, time=10)
    []
    >>> union.watermark(1, key=0, time=12)
    [Watermark(key=0, time=10)]
    >>> union.idle(0)
    [Watermark(key=0, time=12)]
    >>> union.idle(1)
    [Idle()]
    """

    def __init__(self, inputs: int | Iterable[Input]) -> None:
        names: Iterable[Input] = range(inputs) if isinstance(inputs, int) else inputs
        self._inputs: dict[Input, _State] = {name: _State() for name in names}
        self._emitted: dict[int, int] = {}
        self._is_idle = False

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs, in the order in which they were added."""
        return tuple(self._inputs)

    def add(self, name: Input) -> None:
        """Add an input, such as a new partition. It blocks every key until it sends that key or is idle."""
        self._inputs.setdefault(name, _State())
        self._is_idle = False

    def watermark(self, name: Input, key: int, time: int) -> Emitted:
        """Receive a watermark of an input and return what is emitted. Raises `WatermarkRegress` if it does not rise."""
        for what, value in (("time", time), ("key", key)):
            if not hasattr(value, "__index__"):
                raise TypeMismatch(
                    f"the {what} of a watermark is {value!r}",
                    detail=f"input {name!r} sent a {type(value).__name__}",
                    hint="keys and times are integers: times of dates count days, those of timestamps microseconds",
                )
        if time == IDLE_TIME:
            return self.idle(name)
        state = self._state(name)
        last = state.sent.get(key)
        if last is not None and time <= last:
            raise WatermarkRegress(
                f"the watermark of key {key} does not rise",
                detail=f"input {name!r} sent {time} after {last}",
                hint="a watermark promises that no earlier row follows: send one only when it is higher than the last",
            )
        self._activate(state)
        state.sent[key] = time
        return self._advance([key])

    def update(self, watermarks: Mapping[Input, Mapping[int, int]]) -> Emitted:
        """Receive watermarks of several inputs at once and return what is emitted.

        All of them become active before anything is emitted, so their order makes no difference. A value that does not
        rise changes nothing. Cost: O(inputs × keys).
        """
        for name, values in watermarks.items():
            state = self._state(name)
            self._activate(state)
            for key, time in values.items():
                last = state.value(key)
                state.sent[key] = time if last is None else max(time, last)
        return self._advance(sorted({key for values in watermarks.values() for key in values}))

    def event(self, name: Input) -> Emitted:
        """Mark an input as active because it has rows. Emits nothing."""
        self._activate(self._state(name))
        return []

    def idle(self, *names: Input) -> Emitted:
        """Mark inputs as idle; return the watermarks that this emits, or `Idle` if all inputs are idle now.

        Inputs that become idle in one call do so together, so their order makes no difference.
        """
        states = [state for state in map(self._state, names) if not state.idle]
        if not states:
            return []
        for state in states:
            state.idle = True
        if not all(state.idle for state in self._inputs.values()):
            return self._advance(sorted({key for state in self._inputs.values() for key in state.values()}))
        self._is_idle = True
        return [Idle()]

    @property
    def is_idle(self) -> bool:
        """Whether all inputs are idle."""
        return self._is_idle

    def idle_inputs(self) -> tuple[Input, ...]:
        """Return the inputs that are idle."""
        return tuple(name for name, state in self._inputs.items() if state.idle)

    def value(self, key: int) -> int | None:
        """Return the last emitted watermark of a key; None before the first."""
        return self._emitted.get(key)

    def value_of(self, name: Input, key: int) -> int | None:
        """Return the last watermark that an input sent for a key; None before the first."""
        return self._state(name).value(key)

    def blocked_by(self, key: int) -> Input | None:
        """Return the input that blocks a key: one that has not sent it, or else the slowest; None if all are idle."""
        active = {name: state.value(key) for name, state in self._inputs.items() if not state.idle}
        for name, value in active.items():
            if value is None:
                return name
        return min(active, key=lambda name: active[name] or 0, default=None)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain JSON data."""
        return {
            "inputs": [
                {"input": name, "idle": state.idle, "values": _pairs(state.values())}
                for name, state in self._inputs.items()
            ],
            "released": _pairs(self._emitted),
        }

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Continue from snapshots. Of several, the smallest value of each key counts; an input is idle if it is in all.

        An input may start again below its value in the snapshot: that is not a regress, and has no effect until the
        input has passed it. An input that is in no snapshot starts without a value.
        """
        by_input: dict[Input, list[Mapping[str, Any]]] = {}
        for snapshot in snapshots:
            for entry in snapshot["inputs"]:
                by_input.setdefault(entry["input"], []).append(entry)
        for name in self._inputs:
            entries = by_input.get(name, [])
            floor = smallest(dict(entry["values"]) for entry in entries)
            self._inputs[name] = _State(bool(entries) and all(entry["idle"] for entry in entries), floor=floor)
        self._emitted = smallest(dict(snapshot["released"]) for snapshot in snapshots)
        self._is_idle = bool(self._inputs) and all(state.idle for state in self._inputs.values())

    def _activate(self, state: _State) -> None:
        state.idle = False
        self._is_idle = False

    def _advance(self, keys: Iterable[int]) -> Emitted:
        """Emit the keys, in their order, whose minimum over the active inputs is above the last emitted value."""
        active = [state for state in self._inputs.values() if not state.idle]
        result: Emitted = []
        for key in keys:
            values = [value for value in (state.value(key) for state in active) if value is not None]
            if len(values) < len(active) or not values:
                continue
            low, last = min(values), self._emitted.get(key)
            if last is None or low > last:
                self._emitted[key] = low
                result.append(Watermark(key, low))
        return result

    def _state(self, name: Input) -> _State:
        state = self._inputs.get(name)
        if state is None:
            names = [str(present) for present in self._inputs]
            raise MissingInput(
                f"there is no input {name!r}",
                detail=f"the inputs are {', '.join(names) or 'none'}",
                hint=near_misses(str(name), names) or "use one of these",
            )
        return state


def smallest(values: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the smallest value of each key, over the mappings that have it.

    >>> smallest([{0: 15, 1: 11}, {0: 12}])
    {0: 12, 1: 11}
    """
    result: dict[int, int] = {}
    for mapping in values:
        for key, value in mapping.items():
            result[key] = min(value, result.get(key, value))
    return result


def _pairs(values: Mapping[int, int]) -> list[list[int]]:
    """Return a mapping as pairs: JSON has no integer keys."""
    return [[key, value] for key, value in sorted(values.items())]
