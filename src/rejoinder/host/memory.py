"""Memory of a task: a limit on what it may allocate, and a `LimitReached` error if that is not enough.

The kernel enforces the limit: during a task the process may map only so many more bytes (RLIMIT_DATA, on Linux). An
allocation of Arrow, NumPy or DuckDB beyond it fails, and we raise a clear error. Without the limit the machine would
run out of memory, and the kernel would kill the process. Mapped files, such as runs of the state, do not count.
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
LEAST = 1 << 30  # bytes that a task may always allocate
_CGROUPS = Path("/sys/fs/cgroup")

_tasks_at_once = 1


def share_memory(tasks: int) -> None:
    """Set how many tasks run concurrently on this machine, each in its own process; 0: one per core."""
    global _tasks_at_once
    _tasks_at_once = tasks or os.cpu_count() or 1


def memory_cap() -> int:
    """Return how many bytes a task of this process may allocate: the cap `max_memory`, or its share of the memory."""
    return caps().max_memory or max(LEAST, int(SHARE * available_bytes()) // _tasks_at_once)


@lru_cache(maxsize=1)
def available_bytes() -> int:
    """Return the smallest of the memory of the machine, the limit of the container, and the limit of this process."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_container_limits()]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)  # Spark sets it: spark.executor.pyspark.memory
    return min([*sizes, *([soft] if soft != resource.RLIM_INFINITY else [])])


def _container_limits() -> Iterator[int]:
    """Yield the limits of the control groups of this process, innermost first."""
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
_default_limits: tuple[int, int] | None = None


@contextmanager
def limited_memory(place: str) -> Iterator[None]:
    """Limit the memory that the body may allocate to `memory_cap` bytes. Raises `LimitReached` if it needs more.

    The limit is that of the process. While several threads are inside, the limit of the first one applies.
    """
    _enter()
    try:
        yield
    except MemoryError as failure:
        raise out_of_memory(place) from failure
    finally:
        _leave()


def out_of_memory(what: str) -> LimitReached:
    """Return the error for work that needs more memory than a task may allocate."""
    return cap_reached(
        f"{what} needs more memory than a task may take",
        "max_memory",
        "an allocation was refused",
        most=memory_cap(),
        remedy="read less per epoch (`maxBytesPerTrigger`, `maxFilesPerTrigger` or `maxOffsetsPerTrigger` of its "
        "sources), or set a higher parallelism",
    )


def _enter() -> None:
    global _users, _default_limits
    if sys.platform != "linux":
        return
    with _lock:
        if _users == 0:
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            limit = _mapped_bytes() + memory_cap()
            bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
            _default_limits = soft, hard
            resource.setrlimit(resource.RLIMIT_DATA, (min([limit, *bounds]), hard))
        _users += 1


def _leave() -> None:
    global _users
    if sys.platform != "linux":
        return
    with _lock:
        _users -= 1
        if _users == 0 and _default_limits is not None:
            resource.setrlimit(resource.RLIMIT_DATA, _default_limits)


def _mapped_bytes() -> int:
    """Return the private writable bytes of this process, which RLIMIT_DATA counts."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
