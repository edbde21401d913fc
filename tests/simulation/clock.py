"""The clocks of the world: one true time that only the world moves, and what each driver believes."""

from __future__ import annotations

from dataclasses import dataclass, field

START = 1_800_000_000_000


@dataclass
class Clock:
    """Milliseconds since 1970. `offsets`: how far the clock of a driver is ahead of the true time."""

    now: int = START
    offsets: dict[str, int] = field(default_factory=dict)

    def pass_time(self, milliseconds: int) -> None:
        """Move the true time on."""
        self.now += milliseconds

    def jump(self, driver: str, milliseconds: int) -> None:
        """Set the clock of a driver wrong by so much."""
        self.offsets[driver] = milliseconds

    def read(self, driver: str) -> int:
        """What the clock of a driver says."""
        return self.now + self.offsets.get(driver, 0)
