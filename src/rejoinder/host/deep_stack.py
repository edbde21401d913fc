"""Run a function on a stack that is large enough for deep trees.

Parser, binder and planner recurse, with several frames for each level of an expression or query. Python's limit of
1,000 frames is reached at a few hundred levels. A separate thread can have a larger stack.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

STACK_BYTES = 512 << 20  # of address space; memory is allocated as the stack grows
FRAMES = 400_000

T = TypeVar("T")
_starting = threading.Lock()
_depth = threading.local()
_users = 0


def on_deep_stack(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call a function in a thread with a large stack, or directly if this is one. Raises what the function raises."""
    if getattr(_depth, "is_deep", False):
        return function(*arguments, **named)
    results: list[T] = []
    failures: list[BaseException] = []

    def call() -> None:
        _depth.is_deep = True
        try:
            results.append(function(*arguments, **named))
        except BaseException as failure:  # noqa: BLE001 - raised again in the calling thread
            failures.append(failure)

    with _starting:
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=call, name="rejoinder-deep", daemon=True)
            _raise_limit(1)
            thread.start()
        finally:
            threading.stack_size(before)
    try:
        thread.join()
    finally:
        with _starting:
            _raise_limit(-1)
    if failures:
        raise failures[0]
    return results[0]


_default_limit = sys.getrecursionlimit()


def _raise_limit(change: int) -> None:
    """Count users of the higher recursion limit, which is global to the interpreter; reset it after the last one."""
    global _users, _default_limit
    if _users == 0:
        _default_limit = sys.getrecursionlimit()
    _users += change
    sys.setrecursionlimit(max(FRAMES, _default_limit) if _users else _default_limit)
