"""Start the JVM of a local session: without its start-up notices, and out of reach of the terminal's Ctrl-C.

PySpark hands the JVM our standard error. Here a thread stands in between: it leaves out what every start says, and
passes the rest on, or keeps it for whoever reports the failure (`JvmLog`).
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

KEPT_LINES = 400
# Said at every start, whatever the level of the log: the JVM's own notice, and what precedes the log's configuration.
NOTICES = re.compile(
    r"WARNING: Using incubator modules"
    r"|Using Spark's default log4j profile"
    r"|Setting default log level"
    r"|To adjust logging level"
    r"|\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN (Utils|NativeCodeLoader|SparkConf):"
)


class JvmLog:
    """What the JVM and its workers say. `is_quiet`: nothing is printed; `lines` keeps the last of it either way."""

    def __init__(self, *, is_quiet: bool) -> None:
        self.is_quiet = is_quiet
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def take(self, lines: Iterable[str]) -> None:
        """Take lines until there are no more; runs in a thread of its own."""
        for line in lines:
            if NOTICES.match(line):
                continue
            self.lines.append(line)
            if not self.is_quiet:
                sys.stderr.write(line)


def start_context(conf: SparkConf, log: JvmLog) -> SparkContext:
    """The context of this process: the one that is there, or a new one on a JVM that reports to `log`."""
    if SparkContext._gateway is not None:
        return SparkContext.getOrCreate(conf)
    reading, writing = os.pipe()
    pipe = os.fdopen(reading, encoding="utf-8", errors="replace")
    threading.Thread(target=log.take, args=(pipe,), name="rejoinder-jvm-log", daemon=True).start()
    try:
        with _patience():
            # A session of its own: Ctrl-C in a terminal goes to us, who stop the flow, and not to workers amid a task.
            # The JVM still ends with us: it watches its standard input.
            gateway = launch_gateway(conf, {"stderr": writing, "start_new_session": True})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    return SparkContext(conf=conf, gateway=gateway)


@contextmanager
def _patience() -> Iterator[None]:
    """Hold a Ctrl-C back until the JVM is there: one that loses us on its way would stay for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if held:
        raise KeyboardInterrupt
