"""Caps that guard the machine: how large a statement, a value or a file may be. Tasks get those of the driver.

All of them are generous: what meets one is a mistake or an attack. Each error names its cap and how to raise it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from rejoinder.errors import InvalidSql, LimitReached, UnknownName, near_misses


@dataclass(frozen=True)
class Caps:
    """The caps, by name."""

    max_sql_length: int = 4 << 20  # characters of a text of statements
    max_sql_depth: int = 250  # brackets and CASEs within each other
    max_sql_operators: int = 6_000  # operators of one expression in a row
    max_query_relations: int = 500  # that one query reads, with the views and CTEs in it put in place
    max_join_inputs: int = 128  # of one join, with the joins of views and subqueries in it
    max_rounds: int = 128  # of an epoch; each is a stage on Spark
    max_value_length: int = 64 << 20  # characters of a text, items of an array, that a function makes
    max_file_bytes: int = 8 << 30  # of one file, once it is decompressed
    max_file_ratio: int = 1_000  # of the decompressed to the stored size, for files that become larger than 256 MiB
    max_epoch_rows: int = 1_000_000_000  # that one epoch reads, of all sources
    max_epoch_bytes: int = 64 << 30  # that one epoch reads, of all sources, once they are decoded
    max_memory: int = 0  # bytes that a task may take; 0: its share of 80 % of the machine (`host.memory`)


_caps = Caps()


def caps() -> Caps:
    """The caps of this process."""
    return _caps


def use_caps(wanted: Caps) -> None:
    """Take over the caps of another process."""
    global _caps
    _caps = wanted


def set_caps(given: Mapping[str, int]) -> None:
    """Set caps of this process by name. Raises `UnknownName` or `InvalidSql`.

    >>> set_caps({"max_sql_depth": 250})
    """
    names = [field.name for field in fields(Caps)]
    for name, value in given.items():
        if name not in names:
            hint = near_misses(name, names) or f"one of {', '.join(names)}"
            raise UnknownName(f"there is no cap `{name}`", detail=f"caps: {', '.join(given)}", hint=hint)
        if value < (0 if name == "max_memory" else 1):
            raise InvalidSql(f"cap `{name}` is {value!r}", hint="give a whole number, 1 or more")
    use_caps(replace(_caps, **given))


def cap_reached(fact: str, name: str, detail: str, *, most: int | None = None, remedy: str = "") -> LimitReached:
    """The error for what goes beyond a cap; `fact` does not name it.

    `most` is what the cap amounts to, if that is not its value; `remedy` is what helps besides raising it.
    """
    most = getattr(_caps, name) if most is None else most
    raised = f'raise the cap: caps={{"{name}": {2 * most}}} of the flow, or --cap {name}={2 * most}'
    return LimitReached(
        fact,
        detail=f"{detail}; the cap `{name}` is {most:,}",
        hint=f"{remedy}; or {raised}" if remedy else f"if this is what you want, {raised}",
    )
