"""A function of the user's, by name, and how it is called: what the catalog's text says, never the function itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PythonFunction:
    """`module:name` of a Python function that any process can import, and the rules of its calls.

    At most `concurrency` calls of a task are out at a time; each is given up after `timeout` seconds, and tried
    `retries` times more. With a `batch`, a call gets a table of up to that many rows, else one row as a dict.
    """

    name: str
    concurrency: int = 16
    timeout: float | None = None
    retries: int = 0
    batch: int = 0

    @property
    def text(self) -> str:
        """Canonical text."""
        parts = [self.name, f"{self.concurrency} at a time"]
        parts += [f"within {self.timeout:g} s"] if self.timeout is not None else []
        parts += [f"retries: {self.retries}"] if self.retries else []
        parts += [f"batches of {self.batch}"] if self.batch else []
        return ", ".join(parts)
