"""The bound certificate of EXPLAIN: how long rows of an arrangement are kept, by which condition, and how many rows
are expected; or why they are kept for ever, and the edit that would bound them.

There is no certificate for views whose sources declare no WATERMARK: without one no row expires.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.explain.formula_text import amount_text, formula_text
from rejoinder.ir.identities import UNIT, OperationInput, PendingRows, RelationId, all_rows, source_of
from rejoinder.ir.logical import Bound
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.plan.blocks.lineage import sources_of
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.join.block_bounds import direct_bounds
from rejoinder.plan.operations.operation import StateText
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.retention_bound import Retention, RetentionBound
from rejoinder.plan.planning import Plan
from rejoinder.plan.rounds.labels import Labels
from rejoinder.plan.time.bound_hints import missing_edit, watermark_edit
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Times
from rejoinder.store.runs.time_values import NO_TIME
from rejoinder.watermarks.formula import Formula, Watermark, value_of


class _AsIfOnTime(Frontiers):
    """The frontiers that a view would have if late rows were left out."""

    def _is_read_on_time(self, relation: RelationId) -> bool:
        return source_of(relation) in self.sources

    def _found(self, relation: RelationId, name: str) -> Formula | None:
        source = self.sources.get(source_of(relation))
        if source is None or source.relation != relation:
            return super()._found(relation, name)
        is_timed = source.kind != "table" and name in source.watermarks
        return Watermark(source.name, name) if is_timed else None


def _columns(bound: Bound) -> set[str]:
    return {bound.later.columns[0], bound.earlier.columns[0]}


@dataclass
class Certificate:
    """Describes the bounds of a view's arrangements, from a plan, its state and the watermarks."""

    plan: Plan
    state: State
    times: Times
    view: str
    labels: Labels
    _frontiers: Frontiers = field(init=False)

    def __post_init__(self) -> None:
        program = self.plan.program
        self._frontiers = _AsIfOnTime(program.sources, program.relations)
        read = sources_of(program.views[self.view], program.relations)
        self.is_given = any(program.sources[name].watermarks for name in read if name in program.sources)

    def never(self) -> list[str]:
        """Return warnings about conditions of the view's joins that no pair of times can satisfy together."""
        program, contradictions = self.plan.program, dict[str, None]()
        derived = [name for name in program.derived if self.view in program.readers(name)]
        for block in (program.views[self.view], *(b for name in derived for b in program.derived[name].blocks)):
            predicates = [p for p in (*block.predicates, *(p for each in block.inputs for p in each.on)) if p.bounds]
            slacks = direct_bounds(predicates)
            for (later, earlier), slack in slacks.items():
                if slack + slacks.get((earlier, later), -slack) < 0 and later < earlier:
                    both = {later, earlier}
                    bounding = [p for p in predicates if any(_columns(bound) == both for bound in p.bounds)]
                    contradictions[self.labels.conditions([p.expression for p in bounding], block)] = None
        return [f"no pair can satisfy {text}; check the sign of the interval" for text in contradictions]

    def lines(self, arrangement: Arrangement) -> list[str]:
        """Return the certificate of an arrangement."""
        retention = self.plan.dataflow.retentions.get(arrangement.id)
        if retention is None:
            reason = self._unbounded(arrangement) if self.is_given else None
            return [] if reason is None else [f"kept for ever: {reason[0]}", f"to bound it, {reason[1]}"]
        condition = retention.condition
        asked = "" if condition is None else f", and only where {condition.text}"
        by = self._by(arrangement, retention)
        kept = f"kept while {self._kept(arrangement, retention)}{asked}"
        return [kept, *([f"by {by}"] if by else []), self._expected(arrangement, retention)]

    def _kept(self, arrangement: Arrangement, retention: Retention) -> str:
        """Describe the rows that users need: those that are not below a limit."""

        def text(limit: RetentionBound) -> str:
            column = self.labels.column(arrangement.relation, limit.column)
            return f"{column} >= {formula_text(limit.below, self._kind)}"

        users = [" and ".join(map(text, limits)) for limits in retention.users]
        return users[0] if len(users) == 1 else ", or ".join(users)

    def _kind(self, source: str, column: str) -> pa.DataType:
        return self.plan.program.sources[source].schema.field(column).type

    # -- the predicate ------------------------------------------------------------------------------------------------

    def _by(self, arrangement: Arrangement, retention: Retention) -> str:
        """Describe the conditions, or the operation, that give the bound."""
        made = self._made(arrangement)
        text = None if made is None else made.operation.certificate
        if made is not None and text is not None:
            columns = [self.labels.column(made.id, limit.column).removesuffix(".start") for limit in retention.bounds]
            return f"{text.clause} {', '.join(dict.fromkeys(columns))}"
        clauses: dict[str, None] = {}
        by = {limit.column for limit in retention.bounds}
        for block, at in self._uses(arrangement):
            ids = [i for i, name in block.inputs[at].columns if name in by]
            predicates = (*block.predicates, *(p for each in block.inputs for p in each.on))
            bounding = [p for p in predicates if any(b.later.columns[0] in ids for b in p.bounds)]
            bounding = bounding or [p for p in predicates if p.bounds]
            conditions = self.labels.conditions([p.expression for p in bounding if not p.null_safe], block)
            clauses |= {conditions: None} if conditions else {}
        return "; ".join(clauses)

    def _made(self, arrangement: Arrangement) -> Derived | None:
        """Return the derived relation whose own state an arrangement is; None if it has only looked-up rows."""
        made = self.plan.program.maker(arrangement.relation)
        is_input = isinstance(arrangement.relation, OperationInput)
        is_state = is_input or (made is not None and made.id in self.plan.dataflow.users[arrangement.id])
        return made if is_state else None

    def _uses(self, arrangement: Arrangement) -> Iterator[tuple[Block, int]]:
        """Yield the blocks that look up rows of an arrangement, with the number of the input."""
        program = self.plan.program
        for user in self.plan.dataflow.users[arrangement.id]:
            for block in () if isinstance(user, str) else program.relations[user].blocks:
                for at, each in enumerate(block.inputs):
                    if each.relation == arrangement.relation and len(block.inputs) > 1:
                        yield block, at

    # -- how many rows ------------------------------------------------------------------------------------------------

    def _expected(self, arrangement: Arrangement, retention: Retention) -> str:
        """Describe the expected number of rows: that of the user that needs most, by the tightest of its limits."""
        users = []
        for limits in retention.users:
            known = [found for limit in limits if (found := self._expected_by(arrangement, limit)) is not None]
            if not known:
                return "expected rows: unknown yet"
            users.append(min(known))
        about, text = max(users)
        return f"expected rows: about {about:,} ({text})" if about else "expected rows: none"

    def _expected_by(self, arrangement: Arrangement, limit: RetentionBound) -> tuple[int, str] | None:
        """Estimate the rows that a limit keeps: the current rows per unit of event time, times the retention.

        Returns None if it cannot be estimated yet.
        """
        refs = [ref for part in self.state.arrangements.get(arrangement.id, ()) for ref in part.refs if ref.rows]
        spans = [span for ref in refs if (span := ref.span(limit.column)) is not None]
        lows = [low for low, _ in spans if low != NO_TIME]
        highs = [high for _, high in spans if high != NO_TIME]
        below = value_of(limit.below, self.times, LEAST)
        if not lows or not highs or min(lows) >= max(highs) or below == LEAST:  # a single time gives no rate
            return None
        kind = arrangement.schema.field(limit.column).type
        length, rows = max(highs) - min(lows) + 1, sum(ref.rows for ref in refs)
        kept = max(0, max(highs) - below + 1)
        seen = amount_text(length if length < 1_000_000 else round(length, -6), kind)
        over = amount_text(kept if kept < 1_000_000 else round(kept, -6), kind)
        column = self.labels.column(arrangement.relation, limit.column)
        about = max(1, round(rows * kept / length)) if kept else 0
        return about, f"{rows:,} in {seen} of {column}, kept for {over}"

    # -- why for ever -------------------------------------------------------------------------------------------------

    def _unbounded(self, arrangement: Arrangement) -> tuple[str, str] | None:
        """Return why rows are kept for ever, and the edit that would bound them; None if there is nothing to say."""
        program = self.plan.program
        relation = all_rows(arrangement.relation)
        if isinstance(relation, PendingRows):
            return None
        source = program.sources.get(source_of(relation))
        if source is not None and source.kind == "table":
            return (
                f"a row of table `{source.name}` stays until it is replaced or deleted",
                "join the version of a time (FOR SYSTEM_TIME AS OF), or read it as a stream with a WATERMARK",
            )
        made = self._made(arrangement)
        if made is not None and made.operation.certificate is not None:
            return self._never_expires(made, made.operation.certificate)
        for block, at in self._uses(arrangement):
            for start, other in enumerate(block.inputs):
                known = [self._frontiers.limit(block, start, i) for i, _ in block.inputs[at].columns]
                if start != at and other.relation != UNIT and not any(known):
                    return self._missing(relation, all_rows(other.relation))
        return "another part of the view is not bounded", "bound that: then late rows can be left out"

    def _never_expires(self, made: Derived, text: StateText) -> tuple[str, str]:
        if any(self._frontiers.of_input(made, name) for name in made.operation.expiry_columns(made)):
            return "another part of the view is not bounded", "bound that: then late rows can be left out"
        return f"{text.row} can come at any time: no event time with a WATERMARK is part of it", text.edit

    def _missing(self, rows: RelationId, changes: RelationId) -> tuple[str, str]:
        program, names = self.plan.program, [self.labels.relation(relation) for relation in (rows, changes)]
        for relation in (rows, changes):
            source = program.sources.get(source_of(relation))
            if source is not None and source.kind == "table":
                return (
                    f"a row of table `{source.name}` can change at any time, and match any row of `{names[0]}`",
                    "join the version of a time (FOR SYSTEM_TIME AS OF), or read it as a stream with a WATERMARK",
                )
            if source is not None and not source.watermarks:
                return f"`{source.name}` has no WATERMARK", watermark_edit(source)
        return (
            f"no condition says how far back changes of `{names[1]}` can reach",
            missing_edit(rows, changes, program.sources, program.derived),
        )
