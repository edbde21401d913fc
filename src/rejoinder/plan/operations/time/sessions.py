"""Sessions: the rows of a block with the start of the session that each is in, and the groups by such a start.

The end of a session is not a column of its rows: each new row would change all of them. It is the largest time of the
group plus the gap. So a row at the end of a session changes the row of its group and nothing else.

What is kept is the relation itself, with the starts, by partition and ordered by time. Below the frontier of the time
no row changes, and a row more than a gap below it neither extends a session nor is extended: it expires, and with it
the group whose largest time it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.accumulators import Layout
from rejoinder.plan.blocks.normal_form import Block, Derived, derive, selected
from rejoinder.plan.operations.append_only import appends
from rejoinder.plan.operations.grouping import Grouping, aggregated
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.physical import steps
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.watermarks.formula import Formula, lowered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rejoinder.ir.catalog import Source
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class Sessions(Operation):
    """The rows of the only block and, in the last column, the first time of their session within their `partition`."""

    partition: tuple[str, ...]
    time: str
    gap: int

    keeps_state = True
    certificate = StateText("SESSION", "a row", "declare a WATERMARK on the time of the session")

    @property
    def text(self) -> str:
        return f"session of {self.time} within {self.gap} by {', '.join(self.partition)}"

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._by_time(made))]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of rows with starts."""
        arrangement = self._by_time(made)

        def step(changes: str, result: str) -> steps.Session:
            return steps.Session(changes, result, arrangement, self._start(made), self.gap, whole=whole)

        add_keyed_step(rounds, made, rounds.collect_input(made), arrangement.key, step)

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """That of the time. A change moves the starts of later rows, whatever their other columns are."""
        return frontiers.of_input(made, name) if name == self.time else None

    def is_never_null(self, frontiers: Frontiers, made: Derived, name: str) -> bool:
        """Rows without a time are in no session."""
        return name in (self.time, self._start(made)) or super().is_never_null(frontiers, made, name)

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        return (self.time,)

    def expiry(self, frontiers: Frontiers, made: Derived, names: Sequence[str]) -> list[dict[str, Formula]]:
        """A row is needed until no change can come within the gap after it."""
        return [
            {name: lowered(below, self.gap) for name, below in way.items()}
            for way in frontiers.change_sources(made, names)
        ]

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """A start is the time of a row."""
        return super().lineage(made, block, self.time if name == self._start(made) else name)

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        """Those of the block, and the start of the session."""
        found = labels.outputs(made.blocks)
        return found | {self._start(made): f"session of {found.get(self.time, self.time)}.start"}

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        labels = dict(zip(made.schema.names, columns, strict=True))
        by = ", ".join(labels[name] for name in self.partition)
        return f"{blocks[0]} in sessions of {labels[self.time]}{f' by {by}' if by else ''}"

    def _start(self, made: Derived) -> str:
        return str(made.schema.names[-1])

    def _by_time(self, made: Derived) -> Arrangement:
        """The rows by partition, in which NULL is a value like any other, ordered by time."""
        return Arrangement(made.id, Key.of(made.schema, self.partition), made.schema, self.time)


@dataclass(frozen=True)
class SessionGroups(Grouping):
    """Groups by the start of a session; the accumulator `last` is the largest time of a group."""

    last: str
    gap: int

    expires_by_key = False  # a session that goes on leaves rows with smaller largest times, which expire before it
    certificate = StateText("SESSION", "a session", "declare a WATERMARK on the time of the session, and read a stream")

    @property
    def text(self) -> str:
        """Canonical text: a session that has ended expires, other groups by the same keys do not."""
        return f"{super().text}, sessions within {self.gap} by {self.last}"

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """A session changes by rows up to a gap after its largest time, which has the frontier of these rows."""
        if name != self.last:
            return super().frontier(frontiers, made, name)
        below = frontiers.of_input(made, self._time)
        return None if below is None else lowered(below, self.gap)

    def is_never_null(self, frontiers: Frontiers, made: Derived, name: str) -> bool:
        """A session has a time."""
        return name == self.last or super().is_never_null(frontiers, made, name)

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """The time of the rows, by which `last` expires."""
        return (self._time,)

    def expiry(self, frontiers: Frontiers, made: Derived, names: Sequence[str]) -> list[dict[str, Formula]]:
        """A group expires by its largest time. Values have no such time: where they are kept, nothing expires."""
        below = self.frontier(frontiers, made, self.last)
        if below is None or not _moves_whole_sessions(frontiers.sources, frontiers.derived, made):
            return [{}]
        return [{self.last: below}]

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """The largest time is one of the times."""
        if name == self.last:
            return [dict(block.outputs)[self._time]]
        return super().lineage(made, block, name)

    @property
    def _time(self) -> str:
        return next(each.argument for each in self.accumulators if each.name == self.last)

    def _values(self, made: Derived, program: Program) -> Arrangement | None:
        """None if rows come and go with their whole session: then no group needs the next smallest value."""
        if _moves_whole_sessions(program.sources, program.relations, made):
            return None
        return super()._values(made, program)


def _moves_whole_sessions(
    sources: Mapping[str, Source], relations: Mapping[RelationId, Derived], made: Derived
) -> bool:
    """Whether a group loses all its rows or none.

    It does if the rows in sessions are never retracted: then sessions only grow and merge, and one that is merged into
    an earlier one gives it all its rows.
    """
    inputs = [each for block in made.blocks for each in block.inputs]
    rows = relations.get(inputs[0].relation) if len(inputs) == 1 else None
    return rows is not None and isinstance(rows.operation, Sessions) and appends(sources, relations, rows)


def in_sessions(node: logical.Session, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads a block's rows with the starts of their sessions."""
    names = {i: f"c{at}" for at, (i, _) in enumerate(node.columns)}
    operation = Sessions(tuple(names[i] for i in node.partition), names[node.time], node.gap)
    kind = dict(node.columns)[node.time]
    columns = (*node.columns, (node.start, kind))
    return derive("sessions", operation, (selected(block, [i for i, _ in node.columns]),), columns, known)


def session_groups(node: logical.Aggregate, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the groups of rows by the start of their session."""
    assert node.session is not None
    call, gap = node.session

    def make(keys: tuple[pa.DataType, ...], layout: Layout) -> Grouping:
        result = dict(layout.results)[call]
        (last,) = [a.name for a in layout.accumulators if layout.identifier(a.name) == result.columns[0]]
        return SessionGroups(keys, layout.accumulators, last, gap)

    return aggregated(node, block, known, make)
