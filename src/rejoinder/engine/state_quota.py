"""State quotas: how many rows and bytes of state a view may use, checked before an epoch is committed.

All arrangements of the view's plan count: those of its inputs, of its derived relations, and of its gates. They count
as stored, so a retracted row counts until a compaction has netted it. A shared arrangement counts for each view that
uses it. Cost: O(number of runs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rejoinder.errors import InvalidSql, LimitReached
from rejoinder.ir.catalog import View
from rejoinder.ir.identities import OperationInput, PendingRows, RelationId, ViewRows, source_of
from rejoinder.plan.blocks.normal_form import Block
from rejoinder.plan.planning import Plan
from rejoinder.plan.rounds.program import Program
from rejoinder.sql.definitions.view_options import NONE, STATE_BYTES, STATE_ROWS
from rejoinder.state.flow_state import State


@dataclass(frozen=True)
class StateQuota:
    """The maximum number of rows and bytes of state of a view; None means no limit."""

    rows: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for option, maximum in ((STATE_ROWS, self.rows), (STATE_BYTES, self.bytes)):
            if maximum is not None:
                check_count(option, maximum, "give a positive number, or None for no limit")

    def of(self, view: View) -> StateQuota:
        """Return the quota of a view: its own options, or else the values of this quota."""
        options = view.options
        return StateQuota(_option(options, STATE_ROWS, self.rows), _option(options, STATE_BYTES, self.bytes))


def check_count(argument: str, value: object, hint: str = "give a positive whole number") -> None:
    """Raise `InvalidSql` if an argument is not a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidSql(f"`{argument}` is {value!r}", hint=hint)


NO_QUOTA = StateQuota()


def check_quota(plan: Plan, views: Iterable[View], state: State, quota: StateQuota) -> None:
    """Raise `LimitReached` if a view exceeds its quota; the error names the view, its inputs and their sizes."""
    for view in views:
        view_quota = quota.of(view)
        if view_quota == NO_QUOTA:
            continue
        sizes = _state_sizes(plan, view.name, state)
        _check(view.name, STATE_ROWS, {name: rows for name, (rows, _) in sizes.items()}, view_quota.rows)
        _check(view.name, STATE_BYTES, {name: size for name, (_, size) in sizes.items()}, view_quota.bytes)


def _option(options: Mapping[str, str], name: str, default: int | None) -> int | None:
    value = options.get(name)
    if value is None:
        return default
    return None if value == NONE else int(value)


def _state_sizes(plan: Plan, view: str, state: State) -> dict[str, tuple[int, int]]:
    """Return the rows and bytes of state of a view, by source or derived relation."""
    users = {ViewRows(view), *_derived_inputs(plan.program, view)}
    result: dict[str, tuple[int, int]] = {}
    for arrangement in plan.dataflow.arrangements:
        if users & set(plan.dataflow.users[arrangement.id]):
            parts = state.arrangements.get(arrangement.id, ())
            name = _counted_as(arrangement.relation)
            rows, size = result.get(name, (0, 0))
            result[name] = rows + sum(part.rows for part in parts), size + sum(part.bytes for part in parts)
    return result


def _counted_as(relation: RelationId) -> str:
    """Return the source, derived relation or view that an arrangement counts for."""
    match relation:
        case OperationInput():
            return str(relation.of)
        case PendingRows():
            return relation.view
        case _:
            return source_of(relation)


def _derived_inputs(program: Program, view: str) -> set[RelationId]:
    """Return the derived relations that a view reads, directly or through others."""
    names: set[RelationId] = set()

    def visit(blocks: Iterable[Block]) -> None:
        for name in {block_input.relation for block in blocks for block_input in block.inputs} - names:
            if name in program.derived:
                names.add(name)
                visit(program.derived[name].blocks)

    visit((program.views[view],))
    return names


def _check(view: str, option: str, sizes: Mapping[str, int], maximum: int | None) -> None:
    total = sum(sizes.values())
    if maximum is None or total <= maximum:
        return
    unit = "rows" if option == STATE_ROWS else "bytes"
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    listed = ", ".join(f"`{name}` {count:,}" for name, count in largest if count)
    raise LimitReached(
        f"`{view}` would keep {total:,} {unit} of state, most of them of `{largest[0][0]}`, "
        f"and the limit is {maximum:,}",
        detail=f"{unit} by input: {listed}; the epoch is not committed",
        hint="see whose watermark does not advance (SHOW WATERMARKS), or raise the limit: "
        f"ALTER VIEW {view} SET OPTIONS ({option} '{2 * total}'), or `{option}` of the flow",
    )
