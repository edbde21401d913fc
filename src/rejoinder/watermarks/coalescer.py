"""Coalesce keyed watermarks: of several inputs that become one stream, the slowest decides, key by key.

Invariants:
- a key's released value is the minimum over the inputs that are not idle, and rises strictly. It is released as soon as
  every such input has sent the key, and never repeated;
- idleness belongs to an input, not to a key: an idle input is left out for all keys until its next event or watermark,
  then counts with the last value that it sent. What was released is not taken back for an input that returns late;
- only when all inputs are idle is the stream idle, and this is said once.

Pure state over integers, without clock or rows. Cost: O(inputs) a watermark, O(inputs × keys) an idle message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder.errors import MissingInput, TypeMismatch, WatermarkRegress, near_misses

IDLE_TIME = (1 << 63) - 1
"""A watermark of this time is no watermark: it is how an idle message travels."""

Input = int | str


@dataclass(frozen=True)
class Watermark:
    """No row that follows has, in the column of this key, a time below `time`."""

    key: int
    time: int


@dataclass(frozen=True)
class Idle:
    """Nothing comes for now: whoever waits for this stream's watermarks need not."""


Released = list[Watermark | Idle]


@dataclass
class _State:
    """What an input has said. `floor`: values from before a restart, which its watermarks may at first be below."""

    idle: bool = False
    sent: dict[int, int] = field(default_factory=dict)
    floor: dict[int, int] = field(default_factory=dict)

    def value(self, key: int) -> int | None:
        return max((values[key] for values in (self.sent, self.floor) if key in values), default=None)

    def values(self) -> dict[int, int]:
        """The value of each key that was sent, now or before the restart."""
        latest = dict(self.floor)
        for key, value in self.sent.items():
            latest[key] = max(value, latest.get(key, value))
        return latest


class WatermarkCoalescer:
    """Merge the watermarks of inputs: streams of a union, instances upstream, partitions of a source.

    >>> merged = WatermarkCoalescer(2)
    >>> merged.watermark(0, key=0, time=10)
    []
    >>> merged.watermark(1, key=0, time=12)
    [Watermark(key=0, time=10)]
    >>> merged.idle(0)
    [Watermark(key=0, time=12)]
    >>> merged.idle(1)
    [Idle()]
    """

    def __init__(self, inputs: int | Iterable[Input]) -> None:
        names: Iterable[Input] = range(inputs) if isinstance(inputs, int) else inputs
        self._inputs: dict[Input, _State] = {name: _State() for name in names}
        self._released: dict[int, int] = {}
        self._is_idle = False

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs, in the order in which they were named."""
        return tuple(self._inputs)

    def add(self, name: Input) -> None:
        """Take in one more input, such as a new partition: it holds every key back until it sends it or is idle."""
        self._inputs.setdefault(name, _State())
        self._is_idle = False

    def watermark(self, name: Input, key: int, time: int) -> Released:
        """Take a watermark of an input; give what it releases. Raises `WatermarkRegress` if it does not rise."""
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
        return self._release([key])

    def together(self, watermarks: Mapping[Input, Mapping[int, int]]) -> Released:
        """Take what several inputs sent at once, and give what that releases.

        All of them are active before anything is released, so that their order makes no difference. A value that does
        not rise changes nothing. Cost: O(inputs × keys).
        """
        for name, values in watermarks.items():
            state = self._state(name)
            self._activate(state)
            for key, time in values.items():
                last = state.value(key)
                state.sent[key] = time if last is None else max(time, last)
        return self._release(sorted({key for values in watermarks.values() for key in values}))

    def event(self, name: Input) -> Released:
        """Note that an input has rows: it is no longer idle. An event itself releases nothing."""
        self._activate(self._state(name))
        return []

    def idle(self, *names: Input) -> Released:
        """Leave inputs out, for all keys; give what the others release, or that the whole stream is idle.

        Inputs that fall idle together are left out together, so that their order makes no difference.
        """
        states = [state for state in map(self._state, names) if not state.idle]
        if not states:
            return []
        for state in states:
            state.idle = True
        if not all(each.idle for each in self._inputs.values()):
            return self._release(sorted({key for each in self._inputs.values() for key in each.values()}))
        self._is_idle = True
        return [Idle()]

    @property
    def is_idle(self) -> bool:
        """Whether all inputs are idle."""
        return self._is_idle

    def idle_inputs(self) -> tuple[Input, ...]:
        """The inputs that are left out."""
        return tuple(name for name, state in self._inputs.items() if state.idle)

    def value(self, key: int) -> int | None:
        """The last released value of a key; None before the first."""
        return self._released.get(key)

    def value_of(self, name: Input, key: int) -> int | None:
        """The last value that an input sent for a key; None before the first."""
        return self._state(name).value(key)

    def held_by(self, key: int) -> Input | None:
        """The input that holds a key back: one that has not sent it, or else the slowest; None if all are idle."""
        active = {name: state.value(key) for name, state in self._inputs.items() if not state.idle}
        for name, value in active.items():
            if value is None:
                return name
        return min(active, key=lambda name: active[name] or 0, default=None)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as plain JSON data."""
        return {
            "inputs": [
                {"input": name, "idle": state.idle, "values": _pairs(state.values())}
                for name, state in self._inputs.items()
            ],
            "released": _pairs(self._released),
        }

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Go on from a snapshot; of several, the smallest value of each key counts, and idle is what all call idle.

        Inputs may start again below the values of the snapshot: that is no regress, and raises nothing until they are
        past them. Inputs that a snapshot does not know start afresh.
        """
        said: dict[Input, list[Mapping[str, Any]]] = {}
        for snapshot in snapshots:
            for entry in snapshot["inputs"]:
                said.setdefault(entry["input"], []).append(entry)
        for name in self._inputs:
            entries = said.get(name, [])
            floor = smallest(dict(entry["values"]) for entry in entries)
            self._inputs[name] = _State(bool(entries) and all(entry["idle"] for entry in entries), floor=floor)
        self._released = smallest(dict(snapshot["released"]) for snapshot in snapshots)
        self._is_idle = bool(self._inputs) and all(state.idle for state in self._inputs.values())

    def _activate(self, state: _State) -> None:
        state.idle = False
        self._is_idle = False

    def _release(self, keys: Iterable[int]) -> Released:
        """The keys, in their order, whose minimum over the active inputs is above what was released."""
        active = [state for state in self._inputs.values() if not state.idle]
        result: Released = []
        for key in keys:
            values = [value for value in (state.value(key) for state in active) if value is not None]
            if len(values) < len(active) or not values:
                continue
            low, last = min(values), self._released.get(key)
            if last is None or low > last:
                self._released[key] = low
                result.append(Watermark(key, low))
        return result

    def _state(self, name: Input) -> _State:
        state = self._inputs.get(name)
        if state is None:
            known = [str(each) for each in self._inputs]
            raise MissingInput(
                f"there is no input {name!r}",
                detail=f"the inputs are {', '.join(known) or 'none'}",
                hint=near_misses(str(name), known) or "name one of these",
            )
        return state


def smallest(values: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The smallest value of each key, over the mappings that have it.

    >>> smallest([{0: 15, 1: 11}, {0: 12}])
    {0: 12, 1: 11}
    """
    result: dict[int, int] = {}
    for each in values:
        for key, value in each.items():
            result[key] = min(value, result.get(key, value))
    return result


def _pairs(values: Mapping[int, int]) -> list[list[int]]:
    """A mapping with integer keys, as JSON can hold it."""
    return [[key, value] for key, value in sorted(values.items())]
