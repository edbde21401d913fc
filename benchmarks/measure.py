"""A clock over a process tree: wall time, CPU time, resident memory, bytes written.

CPU time of a process that has ended is known twice, and either way may miss some: its parent has it as time of reaped
children, unless the parent ignores SIGCHLD (PySpark's worker daemon does); and the last sample has it, up to a sampling
interval before the end. So each parent counts the larger of the two, which is never too much.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass

import psutil

INTERVAL_S = 0.25
FAMILY_EVERY = 4  # samples between two searches for new processes, which is the dear part


@dataclass(frozen=True)
class Reading:
    """What a tree used between start and stop."""

    seconds: float
    cpu_s: float
    peak_rss_mb: int  # the largest sum over the tree at any one time; pages shared by two processes count twice
    peak_private_mb: int  # of the largest single Python process, without mapped files
    bytes_written: int  # what the kernel was asked to write back to disk, temporary files included; 0 if unknown


@dataclass
class _Usage:
    """One process as last seen."""

    parent: int
    own: float
    reaped: float
    written: int = 0
    alive: bool = True


class TreeClock:
    """Sample a process and all its descendants in a thread, from `start` to `stop`.

    Made when the process starts, so that processes which end before `start` are known to have ended.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._family: set[psutil.Process] = {self._root}
        self._usage: dict[psutil.Process, _Usage] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._rss = self._peak_rss = self._peak_private = 0
        self._start = (0.0, 0.0, 0)
        self._sampler = threading.Thread(target=self._run, daemon=True)
        self._sampler.start()

    def start(self) -> None:
        """Read the clocks and forget the peaks seen so far."""
        with self._lock:
            self._peak_rss = self._peak_private = 0
            self._sample(search=True)
            self._start = (time.perf_counter(), self._cpu(), self._written())

    def stop(self) -> Reading:
        """Read the clocks again and end the sampling. Call while the tree is still there."""
        with self._lock:
            end = time.perf_counter()
            self._sample(search=True)
            began, cpu, written = self._start
            reading = Reading(
                seconds=round(end - began, 3),
                cpu_s=round(self._cpu() - cpu, 2),
                peak_rss_mb=self._peak_rss >> 20,
                peak_private_mb=self._peak_private >> 20,
                bytes_written=max(0, self._written() - written),
            )
        self.close()
        return reading

    @property
    def rss(self) -> int:
        """The resident memory of the tree as last sampled, in bytes."""
        return self._rss

    def close(self) -> None:
        """End the sampling."""
        self._ended.set()
        if threading.current_thread() is not self._sampler:
            self._sampler.join()

    def _run(self) -> None:
        count = 0
        while not self._ended.wait(INTERVAL_S):
            with self._lock:
                self._sample(search=count % FAMILY_EVERY == 0)
            count += 1

    def _sample(self, *, search: bool) -> None:
        if search:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._family.update(self._root.children(recursive=True))
        rss = 0
        for process in list(self._family):
            try:
                rss += self._look(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                self._family.discard(process)
                if process in self._usage:
                    self._usage[process].alive = False
        self._rss, self._peak_rss = rss, max(self._peak_rss, rss)

    def _look(self, process: psutil.Process) -> int:
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                raise psutil.NoSuchProcess(process.pid)
            times, memory = process.cpu_times(), process.memory_info()
            parent, is_python = process.ppid(), "python" in process.name()
        known = self._usage.get(process)
        if known is None:
            known = self._usage[process] = _Usage(parent, 0.0, 0.0)
        known.own = times.user + times.system
        known.reaped = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        if hasattr(process, "io_counters"):
            known.written = process.io_counters().write_bytes
        if is_python:
            self._peak_private = max(self._peak_private, memory.rss - getattr(memory, "shared", 0))
        return int(memory.rss)

    def _cpu(self) -> float:
        """Sum over the living; each brings its ended children, and they theirs."""
        ended: dict[int, list[psutil.Process]] = {}
        for process, usage in self._usage.items():
            if not usage.alive:
                ended.setdefault(usage.parent, []).append(process)

        def cost(process: psutil.Process) -> float:
            usage = self._usage[process]
            children = sum(cost(child) for child in ended.get(process.pid, []) if child != process)
            return usage.own + max(usage.reaped, children)

        return sum(cost(process) for process, usage in self._usage.items() if usage.alive)

    def _written(self) -> int:
        """Sum over the living; Linux adds a reaped child's counters to its parent's."""
        return sum(usage.written for usage in self._usage.values() if usage.alive)


def tree_cpu_s() -> float:
    """User and system time of this process and its living descendants, with that of the children they reaped.

    For engines that the harness runs in its own process, between two points at which they stand still.
    """
    here = psutil.Process()
    total = time.process_time() + sum(here.cpu_times()[2:4])  # of reaped children
    for process in here.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # user, system, and both of reaped children
    return float(total)
