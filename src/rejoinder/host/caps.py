"""Caps that protect the machine: how large a statement, a value or a file may be. Tasks use the caps of the driver.

All of them are generous: input that exceeds one is a mistake or an attack. Each error names its cap and how to raise
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from rejoinder.errors import InvalidSql, LimitReached, UnknownName, near_misses


@dataclass(frozen=True)
class Caps:
    """The caps, by name."""

    max_sql_length: int = 4 << 20  # characters of a text of statements
    max_sql_depth: int = 250  # nested brackets and CASEs
    max_sql_operators: int = 6_000  # consecutive operators of one expression
    max_query_relations: int = 500  # that one query reads, with its views and CTEs expanded
    max_grouping_sets: int = 4_096  # of one GROUP BY, with ROLLUP and CUBE expanded
    max_join_inputs: int = 128  # of one join, with the joins of views and subqueries in it
    max_rounds: int = 128  # of an epoch; each is a stage on Spark
    max_repeated_rows: int = 50_000_000  # that explode, HOP or grouping sets make in one step of a task
    max_value_length: int = 64 << 20  # characters of a string or items of an array that a function returns
    max_file_bytes: int = 8 << 30  # of one file after decompression
    max_file_ratio: int = 1_000  # of the decompressed to the stored size, for files larger than 256 MiB decompressed
    max_epoch_rows: int = 1_000_000_000  # that one epoch reads, over all sources
    max_epoch_bytes: int = 64 << 30  # that one epoch reads, over all sources, after decoding
    max_memory: int = 0  # bytes that a task may allocate; 0: its share of 80 % of the machine (`host.memory`)


_caps = Caps()


def caps() -> Caps:
    """Return the caps of this process."""
    return _caps


def use_caps(new: Caps) -> None:
    """Set all caps of this process, for example those of the driver in a worker."""
    global _caps
    _caps = new


def set_caps(values: Mapping[str, int]) -> None:
    """Set caps of this process by name. Raises `UnknownName` or `InvalidSql`.

    >>> set_caps({"max_sql_depth": 250})
    """
    names = [field.name for field in fields(Caps)]
    for name, value in values.items():
        if name not in names:
            hint = near_misses(name, names) or f"one of {', '.join(names)}"
            raise UnknownName(f"there is no cap `{name}`", detail=f"caps: {', '.join(values)}", hint=hint)
        if value < (0 if name == "max_memory" else 1):
            raise InvalidSql(f"cap `{name}` is {value!r}", hint="use a whole number, 1 or more")
    use_caps(replace(_caps, **values))


def cap_reached(fact: str, name: str, detail: str, *, most: int | None = None, remedy: str = "") -> LimitReached:
    """Return the error for input that exceeds a cap.

    `most` is the effective limit, if it is not the value of the cap; `remedy` is another way out than raising the cap.
    """
    most = getattr(_caps, name) if most is None else most
    raised = f'raise the cap: caps={{"{name}": {2 * most}}} of the flow, or --cap {name}={2 * most}'
    return LimitReached(
        fact,
        detail=f"{detail}; the cap `{name}` is {most:,}",
        hint=f"{remedy}; or {raised}" if remedy else f"if this is what you want, {raised}",
    )
