"""The two lines an engine process exchanges with the harness; standard library only, any interpreter can run it.

The engine says `started` once it is up, waits for the word, joins, says `finished`, and waits again, so that the
harness reads the clocks of a process tree that stands still. No engine measures itself, or pays for being measured.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

PREFIX = "@bench "


@dataclass(frozen=True)
class Task:
    """What an engine is asked to do. Paths are absolute."""

    workload: str
    data: str  # the workload's folder: parquet/<table>/part-NN.parquet, csv/<table>/part-NN.csv
    warm: str  # the same layout with a handful of rows, for engines that warm up; empty if they must not
    state: str  # an empty folder for state and checkpoints
    cores: int
    rows_out: int  # what DuckDB counted; only for engines that never end by themselves
    checksum: int
    store: str = ""  # how state is kept, for engines that have a choice
    broker: str = ""  # the address of a Kafka broker, for engines that read topics

    def as_argument(self) -> str:
        """Encode for the command line.

        >>> Task.from_argument(Task("W2", "d", "w", "s", 2, 3, 4).as_argument()).rows_out
        3
        """
        return json.dumps(asdict(self))

    @staticmethod
    def from_argument(text: str) -> Task:
        return Task(**json.loads(text))


def started() -> None:
    """Tell the harness that the engine is up; return when the clock runs."""
    _say({"event": "started"})


def finished() -> None:
    """Tell the harness that every result is out; return when the clock has stopped."""
    _say({"event": "finished"})


def result(rows_out: int, checksum: int, **extra: object) -> None:
    """Hand over what the harness compares with the truth. Checking is outside the clock."""
    _write({"event": "result", "rows_out": rows_out, "checksum": checksum, **extra})


def _say(message: dict[str, object]) -> None:
    _write(message)
    if not sys.stdin.readline():
        raise SystemExit("the harness is gone")


def _write(message: dict[str, object]) -> None:
    sys.stdout.write(PREFIX + json.dumps(message) + "\n")
    sys.stdout.flush()
