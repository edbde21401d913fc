"""Former definitions of a source: how the files that were read before an ALTER are read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rejoinder.ir.evolution.column_changes import ColumnChange
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.schema_text import schema_from_json, schema_to_json

if TYPE_CHECKING:
    from rejoinder.ir.catalog import Source


@dataclass(frozen=True)
class FormerDefinition:
    """What a source was declared as before an ALTER, as far as records are read by it."""

    identity: str
    """The source that has read the files. A source that is read from its start again has another identity."""
    files: int
    """How many files the source had read by then: these, in the order of reading, are read by this definition."""
    changes: tuple[ColumnChange, ...]
    """What the ALTER did to the columns."""
    schema: pa.Schema
    primary_key: tuple[str, ...]
    order: str | None
    mark_at: int | None
    options: Mapping[str, str]
    computed: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, Expression], ...] = ()
    """Computed columns and their bound expressions; empty until the flow is planned."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {
            "identity": self.identity,
            "files": self.files,
            "changes": [change.to_json() for change in self.changes],
            "columns": schema_to_json(self.schema),
            "primary_key": list(self.primary_key),
            "order": self.order,
            "mark_at": self.mark_at,
            "options": dict(self.options),
            "computed": [list(pair) for pair in self.computed],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FormerDefinition:
        """Read what `to_json` returned."""
        return cls(
            data["identity"],
            data["files"],
            tuple(map(ColumnChange.from_json, data["changes"])),
            schema_from_json(data["columns"]),
            tuple(data["primary_key"]),
            data["order"],
            data["mark_at"],
            dict(data["options"]),
            tuple((name, text) for name, text in data["computed"]),
        )


def former_source(source: Source, number: int) -> Source:
    """Return a source as it was before an ALTER; `number` counts from the oldest."""
    was = source.history[number]
    return replace(
        source,
        schema=was.schema,
        primary_key=was.primary_key,
        order=was.order,
        mark_at=was.mark_at,
        options=was.options,
        computed=was.computed,
        outputs=was.outputs,
        history=(),
    )


def with_former(source: Source, was: Source, identity: str, files: int, changes: tuple[ColumnChange, ...]) -> Source:
    """Return a source that was altered, with its definition of before in its history."""
    former = FormerDefinition(
        identity, files, changes, was.schema, was.primary_key, was.order, was.mark_at, was.options, was.computed
    )
    return replace(source, history=(*was.history, former))
