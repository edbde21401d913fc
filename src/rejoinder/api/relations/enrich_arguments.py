"""ENRICH in Python: the function by its name, its options as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rejoinder.ir.allowed_functions import allow_functions
from rejoinder.ir.function_reference import name_of


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


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
