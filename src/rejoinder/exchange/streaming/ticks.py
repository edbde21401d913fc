"""Ticks: epochs because of the clock, while no input comes: changes wait for it, or a silent source becomes idle.

Time moves with epochs only, and Spark makes an epoch when a source has something new. So the query of a flow that may
need them also reads a folder of *tick* files: empty ones, whose names are all that counts. A thread puts one there when
something waits and its time has come, and sleeps otherwise: where nothing waits, there are no empty epochs.

No row of a tick is read, so a tick may be deleted as soon as there is a newer one: either of them makes an epoch.
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
    """The ticks of one flow, in a folder of their own. `seconds_left`: until the next is due; None if nothing waits."""

    def __init__(self, folder: str, seconds_left: Callable[[], float | None]) -> None:
        self.folder = folder
        self.seconds_left = seconds_left
        self._stirred = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def splits(self, session: SparkSession) -> DataFrame:
        """A stream that has something new after a tick, and never a row."""
        options = {"path": f"{literal(self.folder)}/*.tick", "filenameonly": "true"}
        return file_splits(session, TICKS, options).where(F.lit(False))

    def prepare(self) -> None:
        """Make the folder, and forget the ticks of an earlier run. No query reads it now."""
        make_folder(self.folder, os.path.dirname(self.folder))
        self._delete_but("")

    def tick(self) -> None:
        """Cause an epoch."""
        name = f"{secrets.token_hex(8)}.tick"
        create_file(f"{self.folder}/{name}").close()
        self._delete_but(name)

    def tick_if_due(self) -> None:
        """Cause an epoch if something may come out by now."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            self.tick()

    def start(self) -> None:
        """Tick whenever it is time, until `stop`."""
        self.stop()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="rejoinder-ticks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look again: an epoch is committed, and what waits may be something else."""
        self._stirred.set()

    def stop(self) -> None:
        """End the thread. It may be waiting for an epoch to end; so whoever stops it must not hold up an epoch."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_over = True
            self._stirred.set()
            thread.join()

    def _run(self) -> None:
        while not self._is_over:
            self._stirred.clear()
            left = self.seconds_left()
            if left is not None and left <= 0 and not self._is_over:
                with contextlib.suppress(OSError):  # no room on the disk, say: try again a while later
                    self.tick()
                left = LOOK_SECONDS  # its epoch wakes us before that
            # The clock may be set, and a wait does not know: look at it now and then.
            self._stirred.wait(None if left is None else min(left, LOOK_SECONDS))

    def _delete_but(self, newest: str) -> None:
        for name in os.listdir(self.folder):
            if _TICK.fullmatch(name) and name != newest:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(f"{self.folder}/{name}")
