"""How a view reads its sources: from where on, and without which late rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder.ir.identities import NEVER, SourceRows


@dataclass(frozen=True)
class Reading:
    """How a view reads its sources, by name: after which late row it was created, and where incomplete ones begin.

    `epochs`: with the rows delivered after that epoch. `times`: with the rows whose event times are not below that many
    microseconds.
    """

    late: Mapping[str, int] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)

    def relation(self, source: str, *, on_time: bool) -> SourceRows:
        """The relation that stands for a source in the view."""
        late = self.late.get(source, NEVER) if on_time else NEVER
        return SourceRows(source, self.epochs.get(source), self.times.get(source), on_time, late)

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
