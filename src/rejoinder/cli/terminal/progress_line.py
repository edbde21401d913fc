"""The progress of a flow: one live line on a terminal, otherwise a plain line at intervals."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from rejoinder.cli.terminal.screen import count, duration, err
from rejoinder.engine.epoch_progress import Progress
from rejoinder.formats.text.byte_size import size

PLAIN_SECONDS = 1.0
IDLE_SECONDS = 2.0
RATE_SECONDS = 5.0


class ProgressLine:
    """Counts the progress of every epoch, from any thread, and shows it inside a `with` block."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.epochs = self.rows_in = self.rows_out = self.rows_late = self.bytes_written = 0
        self.last: Progress | None = None
        self._started = self._printed = time.monotonic()
        self._last_at = self._started
        self._recent: deque[tuple[float, int]] = deque()
        self._is_unprinted = False
        self._warned: set[str] = set()
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(console=err, get_renderable=self._line, refresh_per_second=8, transient=True)

    def __enter__(self) -> ProgressLine:
        if err.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if err.is_terminal:
            self._live.stop()
        elif self._is_unprinted:
            self._print()

    def take(self, progress: Progress) -> None:
        """Add the progress of an epoch."""
        now = time.monotonic()
        rows = sum(progress.rows_in.values())
        self.epochs += 1
        self.rows_in += rows
        self.rows_out += sum(progress.rows_out.values())
        self.rows_late += sum(sum(counts.values()) for counts in progress.late.values())
        self.bytes_written += progress.bytes_written
        for notice in progress.notices:
            self.warn(notice)
        self._recent.append((now - progress.seconds, rows))
        self.last, self._last_at, self._is_unprinted = progress, now, True
        if not err.is_terminal and now - self._printed >= PLAIN_SECONDS:
            self._print()

    def say(self, doing: str) -> None:
        """Print the current activity, once if it is repeated."""
        if doing != self.doing:
            self.doing = doing
            err.print(Text(doing, style="dim"))

    def warn(self, notice: str) -> None:
        """Print a notice, once for each text. Only letters up to the first semicolon are compared: figures change."""
        subject = "".join(letter for letter in notice.partition(";")[0] if letter.isalpha())
        if subject not in self._warned:
            self._warned.add(subject)
            err.print(Text(f"warning: {notice}", style="yellow"))

    def seconds(self) -> float:
        """Return the seconds since this line was created."""
        return time.monotonic() - self._started

    def _print(self) -> None:
        self._printed, self._is_unprinted = time.monotonic(), False
        err.print(self.text())

    def _line(self) -> Spinner:
        self._spinner.update(text=self.text())
        return self._spinner

    def text(self) -> Text:
        """Return the current progress on one line."""
        now = time.monotonic()
        if self.last is None:
            return Text(self.doing)
        idle = now - self._last_at
        parts = [
            (f"epoch {self.last.epoch}", "bold"),
            (f"in {self.rows_in:,} ({self._rate(now)})", ""),
            (f"out {self.rows_out:,}", ""),
            (f"state {size(self.last.state_bytes)}", ""),
            (f"written {size(self.bytes_written)}", ""),
        ]
        if self.rows_late:
            parts.insert(3, (f"late {self.rows_late:,}", "yellow"))
        if self.last.lag_seconds is not None:
            parts.append((f"lag {duration(self.last.lag_seconds)}", ""))
        if idle >= IDLE_SECONDS:
            parts.append((f"waiting for {duration(idle)}", "dim"))
        return Text("  ").join(Text(text, style=style) for text, style in parts)

    def _rate(self, now: float) -> str:
        """Return rows per second over the last seconds; without input, over the last epoch."""
        while len(self._recent) > 1 and self._recent[0][0] < now - RATE_SECONDS:
            self._recent.popleft()
        span = max(self._last_at - self._recent[0][0], 0.001)
        rate = sum(rows for _, rows in self._recent) / span
        return f"{rate:,.0f} rows/s" if rate >= 10 else f"{rate:.1f} rows/s"

    def summary(self) -> str:
        """Return a summary of all epochs."""
        rows = f"{count(self.rows_in, 'row')} in, {count(self.rows_out, 'change')} out"
        return f"{count(self.epochs, 'epoch')} in {duration(self.seconds())}: {rows}"
