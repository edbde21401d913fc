"""Variants of a source: the names of relations that hold some of its rows.

- `orders`: every row that the source delivered;
- `orders#from@7`: the rows that it delivered after epoch 7, for a view STARTING AT an epoch;
- `orders#since@9`: the rows whose event times are not below that many microseconds, for a view STARTING AT a time;
- `orders#on-time`: without rows that were late when they came. A view starts with every row, late ones included, and
  its own watermark rules apply from then on. So the relation also names the last epoch in which a late row was left
  out before the view was created (`orders#on-time@7`): views between two late rows share it, others do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ON_TIME = "#on-time"
FROM = "#from@"
SINCE = "#since@"
_VARIANT = re.compile(
    r"(?P<source>.*?)(?:#from@(?P<start>-?\d+))?(?:#since@(?P<time>-?\d+))?(?P<on_time>#on-time(?:@(?P<late>\d+))?)?"
)
NEVER = -1
"""In place of an epoch: no row was late yet."""


@dataclass(frozen=True)
class Variant:
    """Some of the rows of a source: those delivered after epoch `start` (None: all), not below `time` (None: all).

    Late ones are left out if `on_time`.
    `late` is the last epoch in which a row was left out before the first view that reads the relation was created.
    """

    source: str
    start: int | None = None
    time: int | None = None
    on_time: bool = False
    late: int = NEVER

    @property
    def starts(self) -> bool:
        """Whether rows from before a start are left out."""
        return self.start is not None or self.time is not None

    @property
    def name(self) -> str:
        """The name of the relation."""
        start = "" if self.start is None else f"{FROM}{self.start}"
        time = "" if self.time is None else f"{SINCE}{self.time}"
        late = "" if self.late == NEVER else f"@{self.late}"
        return self.source + start + time + (f"{ON_TIME}{late}" if self.on_time else "")


def variant_of(relation: str) -> Variant:
    """What the name of a relation says; a relation that is not a variant of a source is its own source."""
    found = _VARIANT.fullmatch(relation)
    assert found is not None
    start, time, late = (None if found[part] is None else int(found[part]) for part in ("start", "time", "late"))
    return Variant(found["source"], start, time, found["on_time"] is not None, NEVER if late is None else late)


def is_on_time(relation: str) -> bool:
    """Whether late rows are left out of a relation."""
    return ON_TIME in relation


def source_of(relation: str) -> str:
    """The source of a variant, or the relation itself."""
    is_variant = any(mark in relation for mark in (ON_TIME, FROM, SINCE))
    return variant_of(relation).source if is_variant else relation


@dataclass(frozen=True)
class Reading:
    """How a view reads its sources, by name: after which late row it was created, and where incomplete ones begin.

    `epochs`: with the rows delivered after that epoch. `times`: with the rows whose event times are not below that many
    microseconds.
    """

    late: Mapping[str, int] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)

    def relation(self, source: str, *, on_time: bool) -> str:
        """The relation that stands for a source in the view."""
        late = self.late.get(source, NEVER) if on_time else NEVER
        return Variant(source, self.epochs.get(source), self.times.get(source), on_time, late).name

    @property
    def starts(self) -> bool:
        """Whether a source begins somewhere else than at its start."""
        return bool(self.epochs or self.times)

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        return {"late": dict(self.late), "epochs": dict(self.epochs), "times": dict(self.times)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reading:
        """Read what `to_json` gave."""
        return cls(data["late"], data["epochs"], data["times"])


EVERYTHING = Reading()
