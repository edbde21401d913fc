"""Ticks: epochs that the clock causes without input, to emit pending changes, or because a silent source becomes idle.

Time advances only with epochs, and Spark runs an epoch only when a source has new input. So the query of a flow that
may need ticks also reads a folder of empty *tick* files. A thread creates a tick when something is pending and due, and
sleeps otherwise: if nothing is pending, there are no empty epochs.

Ticks have no rows, so a tick may be deleted as soon as there is a newer one: either of them causes an epoch.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoinder.exchange.streaming.checkpoint import TICKS
from rejoinder.exchange.streaming.source_frames import file_splits, literal
from rejoinder.host.private_files import create_file, make_folder

LOOK_SECONDS = 60.0
_TICK = re.compile(r"[0-9a-f]{16}\.tick")


class Ticker:
    """The ticks of one flow. `seconds_left` returns the time until the next is due; None if nothing is pending."""

    def __init__(self, folder: str, seconds_left: Callable[[], float | None]) -> None:
        self.folder = folder
        self.seconds_left = seconds_left
        self._woken = threading.Event()
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def splits(self, session: SparkSession) -> DataFrame:
        """Return a stream without rows that has new input after each tick."""
        options = {"path": f"{literal(self.folder)}/*.tick", "filenameonly": "true"}
        return file_splits(session, str(TICKS), options).where(F.lit(False))

    def prepare(self) -> None:
        """Create the folder, and delete the ticks of an earlier run. No query may be reading it."""
        make_folder(self.folder, os.path.dirname(self.folder))
        self._delete_but("")

    def tick(self) -> None:
        """Cause an epoch."""
        name = f"{secrets.token_hex(8)}.tick"
        create_file(f"{self.folder}/{name}").close()
        self._delete_but(name)

    def tick_if_due(self) -> None:
        """Cause an epoch if something is due."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            self.tick()

    def start(self) -> None:
        """Start the thread that ticks whenever something is due, until `stop`."""
        self.stop()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="rejoinder-ticks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Check again what is pending, because an epoch was committed."""
        self._woken.set()

    def stop(self) -> None:
        """Stop the thread. It may be waiting for the end of an epoch, so the caller must not block an epoch."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_stopped = True
            self._woken.set()
            thread.join()

    def _run(self) -> None:
        while not self._is_stopped:
            self._woken.clear()
            left = self.seconds_left()
            if left is not None and left <= 0 and not self._is_stopped:
                with contextlib.suppress(OSError):  # for example a full disk: try again later
                    self.tick()
                left = LOOK_SECONDS  # the epoch of the tick wakes us earlier
            # A wait does not notice when the clock is set, so it is bounded.
            self._woken.wait(None if left is None else min(left, LOOK_SECONDS))

    def _delete_but(self, newest: str) -> None:
        for name in os.listdir(self.folder):
            if _TICK.fullmatch(name) and name != newest:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(f"{self.folder}/{name}")
