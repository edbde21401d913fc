"""The definition of a join of two streams: kind, columns, condition, and bounds between event times.

A bound `a >= b - c` between times of different inputs, whose watermarks have keys A and B, is the entry
`postpone[B][A] = c`: once B has the watermark w, rows with a < w - c cannot match any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from rejoinder.core.event_times import UNITS, field_of, unit_of
from rejoinder.errors import AmbiguousName, DefinitionConflict, TypeMismatch, UnknownName, Unsupported, near_misses
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.plan.physical.arrangement import Key

Kind = Literal["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]
PRESERVED: dict[Kind, frozenset[int]] = {
    "INNER": frozenset(),
    "LEFT": frozenset({0}),
    "RIGHT": frozenset({1}),
    "FULL": frozenset({0, 1}),
    "SEMI": frozenset(),
    "ANTI": frozenset({0}),
}


@dataclass(frozen=True)
class JoinCondition:
    """How two streams are joined. Columns of both sides have different names, such as `left.time` and `right.time`."""

    kind: Kind
    schemas: tuple[pa.Schema, pa.Schema]
    times: tuple[Mapping[str, int], Mapping[str, int]]
    """For each side, the watermark key of each event-time column."""
    postpone: Mapping[int, Mapping[int, int]]
    """The bounds between event times, by watermark key."""
    condition: Expression | None = None
    on: Sequence[tuple[str, str]] = ()
    """Pairs of columns that must be equal, in addition to `condition`."""
    single: Mapping[int, Expression] = field(default_factory=dict)
    """Conditions on the rows of one side alone, by side, in addition to `condition`."""

    def checked(self, *, capped: bool) -> JoinCondition:
        """Raise a `PlanningError` if the join is not supported. Without a cap on rows, every side needs a bound.

        A preserved side always needs one: the bound determines when a row without a match is emitted.
        """
        if self.kind not in PRESERVED:
            known = list(PRESERVED)
            raise UnknownName(
                f"there is no kind of join `{self.kind}`",
                detail=f"kinds: {', '.join(known)}",
                hint=near_misses(str(self.kind).upper(), known) or "a FULL join keeps the rows of both sides",
            )
        both = [name for name in self.schemas[0].names if name in self.schemas[1].names]
        if both:
            raise AmbiguousName(f"both inputs have a column `{both[0]}`", hint="rename it on one of them")
        for ordinal, times in enumerate(self.times):
            if not times:
                raise Unsupported(
                    f"input {ordinal} of the join has no watermarked column",
                    hint="declare its event time: without one its rows would never expire",
                )
        self._check_columns()
        keys = [key for times in self.times for key in times.values()]
        if len(set(keys)) < len(keys):
            raise DefinitionConflict(
                "two columns of the join have the same watermark key",
                detail=f"the keys are {keys}",
                hint="use a different key for each watermarked column",
            )
        for given, limited in ((given, key) for given, to in self.postpone.items() for key in to):
            if given not in keys or limited not in keys or self.side_of(given) == self.side_of(limited):
                raise DefinitionConflict(
                    f"a postpone time from key {given} to key {limited} is not a bound between the inputs",
                    detail=" and ".join(f"input {n} has {sorted(of.values())}" for n, of in enumerate(self.times)),
                    hint="a bound compares a time of one input with a time of the other",
                )
            self._check_bound(given, limited)
        for ordinal, times in enumerate(self.times):
            if any(key in to for to in self.postpone.values() for key in times.values()):
                continue
            if ordinal in self.preserved or not capped:
                cap = "" if ordinal in self.preserved else ", or cap the rows with `max_rows`"
                raise Unsupported(
                    f"nothing bounds how long rows of input {ordinal} are kept",
                    detail=f"no bound of the form a >= b - c for a of {', '.join(times)}",
                    hint=f"add one to the condition and the postpone map{cap}",
                )
        return self

    def _check_columns(self) -> None:
        """Raise a `PlanningError` for unknown columns, pairs of different types, and times of other types."""
        for schema, times in zip(self.schemas, self.times, strict=True):
            for name in times:
                unit_of(schema, name, "a time of the join")
        for pair in self.on:
            left, right = (
                field_of(schema, name, "in `on`").type for schema, name in zip(self.schemas, pair, strict=True)
            )
            if left != right:
                raise TypeMismatch(
                    f"`{pair[0]}` and `{pair[1]}` must be equal, but have different types",
                    detail=f"{left} and {right}: equal values would have different hashes",
                    hint="cast one of them to the type of the other before the join",
                )
        for ordinal, expression in self.single.items():
            for name in expression.columns:
                field_of(self.schemas[ordinal], name, f"in the condition on rows of input {ordinal}")
        for name in self.condition.columns if self.condition is not None else ():
            field_of(pa.schema([*self.schemas[0], *self.schemas[1]]), name, "in the condition")

    def _check_bound(self, given: int, limited: int) -> None:
        """Raise `TypeMismatch` for a bound between times of different units, or one that is not an integer."""
        names = self.column_of(given), self.column_of(limited)
        units = [
            unit_of(self.schemas[self.side_of(key)], name, "a time of the join")
            for key, name in zip((given, limited), names, strict=True)
        ]
        if units[0] != units[1]:
            raise TypeMismatch(
                f"`{names[0]}` and `{names[1]}` have different units, and a postpone time compares them",
                detail=f"{names[0]}: {units[0]}; {names[1]}: {units[1]}",
                hint="cast one of them to the type of the other before the join",
            )
        if not hasattr(self.postpone[given][limited], "__index__"):
            raise TypeMismatch(
                f"the postpone time from key {given} to key {limited} is {self.postpone[given][limited]!r}",
                detail=f"times are {UNITS}",
                hint="use an integer in the unit of its columns",
            )

    @property
    def preserved(self) -> frozenset[int]:
        """Return the sides whose rows are also emitted without a match."""
        return PRESERVED[self.kind]

    @property
    def keys(self) -> list[int]:
        """Return all watermark keys in ascending order."""
        return sorted(key for times in self.times for key in times.values())

    def side_of(self, key: int) -> int:
        """Return the input of a watermark key."""
        return 0 if key in self.times[0].values() else 1

    def column_of(self, key: int) -> str:
        """Return the column of a watermark key."""
        return next(name for times in self.times for name, of in times.items() if of == key)

    def join_key(self, ordinal: int) -> Key:
        """Return the equality columns of a side."""
        schema = self.schemas[ordinal]
        return Key(tuple(column(pair[ordinal], schema.field(pair[ordinal]).type) for pair in self.on))
