"""A function of the user's, by name, and how it is called: what the catalog's text says, never the function itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import InvalidSql

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def checked_reference(name: str, detail: str) -> str:
    """Return `module:function`, if any process can import it by that name. Raises `InvalidSql`."""
    is_main = name.startswith("__main__:")
    if not _NAME.fullmatch(name) or is_main:
        raise InvalidSql(
            f"`{name}` is not the name of a function that workers can import",
            detail="`__main__` is a different module in each process" if is_main else detail,
            hint="put the function into a module and write 'module:function'",
        )
    return name


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


def name_of(function: Callable[..., object] | str) -> str:
    """Return the name by which every process can import a function: `module:name`. Raises `InvalidSql` without one.

    >>> import json
    >>> name_of(json.dumps)
    'json:dumps'
    """
    if isinstance(function, str):
        return function
    bound = getattr(function, "__self__", None)
    path = getattr(function, "__qualname__", "")
    is_method = bound is not None and not isinstance(bound, type) and type(bound).__name__ != "module"
    if not path or "<" in path or is_method:
        what = (
            "a method of an object"
            if is_method
            else "made inside a function"
            if "<locals>" in path
            else "without a name"
        )
        raise InvalidSql(
            f"`{path or function!r}` cannot be imported by workers",
            detail=f"it is {'a lambda' if '<lambda>' in path else what}",
            hint="define the function at the top of a module, or give the path of the method: 'module:object.method'",
        )
    module: Any = getattr(function, "__module__", None)
    return f"{module}:{path}"
