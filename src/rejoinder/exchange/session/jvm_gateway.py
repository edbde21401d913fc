"""Start the JVM of a local session: without its start-up notices, and protected from the terminal's Ctrl-C.

PySpark connects the JVM to our standard error. Here a thread reads it instead: it drops the notices of every start, and
prints the rest or keeps it for error reports (`JvmLog`).
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
# Printed at every start, whatever the log level: a notice of the JVM, and lines before logging is configured.
NOTICES = re.compile(
    r"WARNING: Using incubator modules"
    r"|Using Spark's default log4j profile"
    r"|Setting default log level"
    r"|To adjust logging level"
    r"|\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN (Utils|NativeCodeLoader|SparkConf):"
)


class JvmLog:
    """The output of the JVM and its workers. It is printed unless `is_quiet`; `lines` keeps the last lines."""

    def __init__(self, *, is_quiet: bool) -> None:
        self.is_quiet = is_quiet
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def take(self, lines: Iterable[str]) -> None:
        """Process lines until the end of the output. Blocks, so it runs in its own thread."""
        for line in lines:
            if NOTICES.match(line):
                continue
            self.lines.append(line)
            if not self.is_quiet:
                sys.stderr.write(line)


def start_context(conf: SparkConf, log: JvmLog) -> SparkContext:
    """Return the context of this process: the existing one, or a new one on a JVM whose output goes to `log`."""
    if SparkContext._gateway is not None:
        return SparkContext.getOrCreate(conf)
    reading, writing = os.pipe()
    pipe = os.fdopen(reading, encoding="utf-8", errors="replace")
    threading.Thread(target=log.take, args=(pipe,), name="rejoinder-jvm-log", daemon=True).start()
    try:
        with _defer_interrupt():
            # A process session of its own: Ctrl-C in a terminal reaches us, and we stop the flow, but not the workers
            # in the middle of a task. The JVM still ends with us: it watches its standard input.
            gateway = launch_gateway(conf, {"stderr": writing, "start_new_session": True})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    return SparkContext(conf=conf, gateway=gateway)


@contextmanager
def _defer_interrupt() -> Iterator[None]:
    """Defer a Ctrl-C until the JVM has started: a JVM that loses its parent during the start would never end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferred: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: deferred.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if deferred:
        raise KeyboardInterrupt
