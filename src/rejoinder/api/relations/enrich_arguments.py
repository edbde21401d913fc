"""ENRICH in Python: the function by its name, its options as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rejoinder.errors import InvalidSql
from rejoinder.ir.allowed_functions import allow_functions


def enrich_call(
    relation: str,
    function: Callable[..., object] | str,
    columns: Mapping[str, str],
    *,
    concurrency: int,
    timeout: float | None,
    retries: int,
    batch: int | None,
) -> str:
    """Return the SQL text of ENRICH over a relation, and allow the function.

    `relation` is a quoted name or a query in parentheses.
    """
    answers = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())
    options = [f"concurrency => {concurrency}"] if concurrency != 16 else []
    options += [f"timeout => INTERVAL '{timeout:f}' SECOND"] if timeout is not None else []
    options += [f"retries => {retries}"] if retries else []
    options += [f"batch => {batch}"] if batch is not None else []
    name = name_of(function)
    allow_functions([name])
    arguments = [f"TABLE {relation}", _text(name), _text(answers), *options]
    return f"ENRICH({', '.join(arguments)})"


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


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
