"""Limits of state: how many rows and bytes a view may have kept for it, checked before an epoch is committed.

What counts is what the view's plan looks up or waits with: every arrangement of its inputs, of the relations it is
made from, and of its gates, as stored (a row that was taken back counts until a merge has netted it). What views share
counts for each of them. O(number of runs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rejoinder.errors import InvalidSql, LimitReached
from rejoinder.ir.catalog import View
from rejoinder.ir.source_variants import source_of
from rejoinder.plan.blocks.normal_form import Block
from rejoinder.plan.planning import Plan
from rejoinder.plan.rounds.program import Program
from rejoinder.sql.definitions.view_options import NONE, STATE_BYTES, STATE_ROWS
from rejoinder.state.flow_state import State


@dataclass(frozen=True)
class Limits:
    """The most rows and bytes that a view may have kept; None: any number."""

    rows: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for option, most in ((STATE_ROWS, self.rows), (STATE_BYTES, self.bytes)):
            if most is not None:
                check_count(option, most, "give a positive number, or None for no limit")

    def of(self, view: View) -> Limits:
        """The limits of a view: its own where it has some, else these."""
        return Limits(_own(view.options, STATE_ROWS, self.rows), _own(view.options, STATE_BYTES, self.bytes))


def check_count(argument: str, value: object, hint: str = "give a positive whole number") -> None:
    """Refuse an argument that is not a whole number above zero."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidSql(f"`{argument}` is {value!r}", hint=hint)


NO_LIMITS = Limits()


def check_limits(plan: Plan, views: Iterable[View], state: State, limits: Limits) -> None:
    """Raise `LimitReached` if a view has more kept for it than it may; names the view, its inputs and their counts."""
    for view in views:
        most = limits.of(view)
        if most == NO_LIMITS:
            continue
        kept = _kept(plan, view.name, state)
        _check(view.name, STATE_ROWS, {name: rows for name, (rows, _) in kept.items()}, most.rows)
        _check(view.name, STATE_BYTES, {name: size for name, (_, size) in kept.items()}, most.bytes)


def _own(options: Mapping[str, str], name: str, default: int | None) -> int | None:
    value = options.get(name)
    if value is None:
        return default
    return None if value == NONE else int(value)


def _kept(plan: Plan, view: str, state: State) -> dict[str, tuple[int, int]]:
    """Rows and bytes that are kept for a view, by the relation whose rows they are."""
    users = {view, *_made_from(plan.program, view)}
    result: dict[str, tuple[int, int]] = {}
    for arrangement in plan.dataflow.arrangements:
        if users & set(plan.dataflow.users[arrangement.id]):
            parts = state.arrangements.get(arrangement.id, ())
            name = source_of(arrangement.relation.partition("/")[0])
            rows, size = result.get(name, (0, 0))
            result[name] = rows + sum(part.rows for part in parts), size + sum(part.bytes for part in parts)
    return result


def _made_from(program: Program, view: str) -> set[str]:
    """The derived relations that a view reads, directly or through others."""
    found: set[str] = set()

    def visit(blocks: Iterable[Block]) -> None:
        for name in {each.relation for block in blocks for each in block.inputs} - found:
            if name in program.derived:
                found.add(name)
                visit(program.derived[name].blocks)

    visit((program.views[view],))
    return found


def _check(view: str, option: str, kept: Mapping[str, int], most: int | None) -> None:
    total = sum(kept.values())
    if most is None or total <= most:
        return
    what = "rows" if option == STATE_ROWS else "bytes"
    largest = sorted(kept.items(), key=lambda each: -each[1])
    listed = ", ".join(f"`{name}` {count:,}" for name, count in largest if count)
    raise LimitReached(
        f"`{view}` would keep {total:,} {what} of state, most of them of `{largest[0][0]}`, and the limit is {most:,}",
        detail=f"{what} by input: {listed}; the epoch is not committed",
        hint="see whose watermark does not advance (SHOW WATERMARKS), or raise the limit: "
        f"ALTER VIEW {view} SET OPTIONS ({option} '{2 * total}'), or `{option}` of the flow",
    )
