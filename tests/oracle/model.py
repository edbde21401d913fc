"""The sources as plain Python: what each holds after every epoch, computed the slow and obvious way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rejoinder.sql.types.spark_types import parse_type
from tests.oracle.values import Kind, normal

Row = dict[str, Any]


@dataclass(frozen=True)
class SourceSpec:
    """A source of a scenario."""

    name: str
    kind: str
    columns: Mapping[str, Kind]
    primary_key: tuple[str, ...] = ()
    order: str | None = None

    @property
    def ddl(self) -> str:
        """The statement that makes it."""
        columns = [f"{name} {kind.sql}" for name, kind in self.columns.items()]
        columns += [f"PRIMARY KEY ({', '.join(self.primary_key)})"] if self.primary_key else []
        options = f" OPTIONS (order '{self.order}')" if self.order else ""
        return f"CREATE {self.kind} {self.name} ({', '.join(columns)}){options}"

    @property
    def schema(self) -> pa.Schema:
        """Its columns for DuckDB, which sees times without a zone."""
        return pa.schema([(name, _zoneless(parse_type(kind.sql))) for name, kind in self.columns.items()])


@dataclass(frozen=True)
class Change:
    """A row put into a source (`sign` 1) or taken out (−1)."""

    source: str
    row: Row
    sign: int = 1

    def __hash__(self) -> int:
        return hash((self.source, frozen(self.row), self.sign))


@dataclass
class Model:
    """The content of all sources."""

    specs: dict[str, SourceSpec]
    bags: dict[str, list[Row]] = field(default_factory=dict)
    tables: dict[str, dict[str, Row]] = field(default_factory=dict)

    def rows(self, source: str) -> list[Row]:
        """What a source holds now."""
        if self.specs[source].primary_key:
            return list(self.tables.get(source, {}).values())
        return list(self.bags.get(source, []))

    def alter(self, spec: SourceSpec, changed: Callable[[Row], Row]) -> None:
        """Give a source other columns, and its rows their new form."""
        self.specs[spec.name] = spec
        self.bags[spec.name] = [changed(row) for row in self.bags.get(spec.name, [])]
        rows = self.tables.get(spec.name, {}).values()
        self.tables[spec.name] = {
            frozen({name: row[name] for name in spec.primary_key}): row for row in map(changed, rows)
        }

    def apply(self, changes: Iterable[Change]) -> None:
        """Play the changes of one epoch."""
        upserts: dict[str, list[Change]] = {}
        for change in changes:
            if self.specs[change.source].primary_key:
                upserts.setdefault(change.source, []).append(change)
            elif change.sign > 0:
                self.bags.setdefault(change.source, []).append(change.row)
            else:
                bag = self.bags[change.source]
                at = next(i for i, row in enumerate(bag) if frozen(row) == frozen(change.row))
                del bag[at]
        for name, listed in upserts.items():
            self._upsert(self.specs[name], listed)

    def _upsert(self, spec: SourceSpec, changes: list[Change]) -> None:
        table = self.tables.setdefault(spec.name, {})
        best: dict[str, Change] = {}
        for change in changes:
            key = frozen({name: change.row[name] for name in spec.primary_key})
            if spec.order is not None and key not in best and key in table:
                best[key] = Change(spec.name, table[key])
            if spec.order is None or key not in best:
                best[key] = change
                continue
            ours, theirs = change.row[spec.order], best[key].row[spec.order]
            if change.sign < 0 and ours is None:  # a tombstone that has a key only takes out whatever is there
                best[key] = Change(spec.name, {**change.row, spec.order: theirs}, -1)
            elif rank(ours) >= rank(theirs):
                best[key] = change
        for key, change in best.items():
            table.pop(key, None)
            if change.sign > 0:
                table[key] = change.row

    def arrow(self, source: str) -> pa.Table:
        """The content of a source for DuckDB."""
        return pa.Table.from_pylist(self.rows(source), schema=self.specs[source].schema)


def rank(value: Any) -> tuple[int, Any]:
    """Spark's order of values: NULL first, NaN last."""
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, value


def frozen(row: Mapping[str, Any]) -> str:
    """A row such that equal rows are equal texts, whatever the order of their columns."""
    return ", ".join(f"{name}={normal(row[name])}" for name in sorted(row))


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Rows as a multiset."""
    return Counter(frozen(row) for row in rows)


def _zoneless(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind
