"""Memory of a task: how much it may take beyond what its process had, and a named error where that is not enough.

The kernel keeps the account: for the time of a task the process may map so many bytes more (RLIMIT_DATA, on Linux), so
that whoever asks for too much, Arrow, NumPy or DuckDB, is refused, and the error is ours. Without it the machine runs
out of memory, and the kernel ends the process without a word. Mapped files, such as runs of the state, do not count.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from rejoinder.errors import LimitReached
from rejoinder.host.caps import cap_reached, caps

if sys.platform != "win32":
    import resource

SHARE = 0.8
LEAST = 1 << 30  # bytes: a task may always take so many
_CGROUPS = Path("/sys/fs/cgroup")

_tasks_at_once = 1


def share_memory(tasks: int) -> None:
    """Say how many tasks run at the same time on this machine, each in a process of its own; 0: one per core."""
    global _tasks_at_once
    _tasks_at_once = tasks or os.cpu_count() or 1


def memory_cap() -> int:
    """How many bytes a task of this process may take: the cap `max_memory`, or its share of what there is."""
    return caps().max_memory or max(LEAST, int(SHARE * available_bytes()) // _tasks_at_once)


@lru_cache(maxsize=1)
def available_bytes() -> int:
    """The memory of the machine, of the container around this process, or of the process, whichever is smallest."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_container_limits()]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)  # Spark sets it: spark.executor.pyspark.memory
    return min([*sizes, *([soft] if soft != resource.RLIM_INFINITY else [])])


def _container_limits() -> Iterator[int]:
    """The limits of the control groups that this process is in, from the innermost on."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = _CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = Path(group.lstrip("/"))
        for folder in (inner, *inner.parents):
            try:
                text = (root / folder / name).read_text(encoding="utf-8").strip()
            except OSError:
                continue
            if text.isdigit():
                yield int(text)


_lock = threading.Lock()
_users = 0
_usual: tuple[int, int] | None = None


@contextmanager
def limited_memory(place: str) -> Iterator[None]:
    """Let what is done here take no more than `memory_cap` bytes. Raises `LimitReached` if it needs more.

    The limit is the process's. While several threads are in here the first one's holds.
    """
    _enter()
    try:
        yield
    except MemoryError as failure:
        raise out_of_memory(place) from failure
    finally:
        _leave()


def out_of_memory(what: str) -> LimitReached:
    """The error for what needs more memory than a task may take."""
    return cap_reached(
        f"{what} needs more memory than a task may take",
        "max_memory",
        "an allocation was refused",
        most=memory_cap(),
        remedy="read less per epoch (`maxBytesPerTrigger`, `maxFilesPerTrigger` or `maxOffsetsPerTrigger` of its "
        "sources), or set a higher parallelism",
    )


def _enter() -> None:
    global _users, _usual
    if sys.platform != "linux":
        return
    with _lock:
        if _users == 0:
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            wanted = _mapped_bytes() + memory_cap()
            bounds = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
            _usual = soft, hard
            resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *bounds]), hard))
        _users += 1


def _leave() -> None:
    global _users
    if sys.platform != "linux":
        return
    with _lock:
        _users -= 1
        if _users == 0 and _usual is not None:
            resource.setrlimit(resource.RLIMIT_DATA, _usual)


def _mapped_bytes() -> int:
    """The private bytes that this process may write to: what RLIMIT_DATA counts."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
