"""Keys, and arrangements: the rows of a relation indexed by a key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.identities import RelationId
from rejoinder.kernels.arrow.hashing import is_exact
from rejoinder.kernels.duckdb.render import duckdb_text

LONGEST_SHOWN = 48
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")*)\"")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def _shown(part: Expression) -> str:
    if part.is_column and _PLAIN.fullmatch(part.columns[0].lower()):
        return part.columns[0]

    def bare(token: re.Match[str]) -> str:
        name = token.group(1)
        return name if name is not None and _PLAIN.fullmatch(name) else token.group()

    text = _QUOTED.sub(bare, duckdb_text(part.node))
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[: LONGEST_SHOWN - 14]}…#{part.key[:12]}"


@dataclass(frozen=True)
class Key:
    """The key by which a delta is partitioned or looked up."""

    parts: tuple[Expression, ...]
    """Each is hashed as its own type."""
    null_safe: frozenset[int] = frozenset()
    """The numbers of the parts in which NULL equals NULL; elsewhere NULL equals nothing."""
    whole: bool = False
    """Whether the key is the whole row."""

    @classmethod
    def of(cls, schema: pa.Schema, names: Iterable[str] | None = None) -> Key:
        """Return the key of columns, or of all columns, in which NULL is a value like any other."""
        names = schema.names if names is None else names
        return cls(tuple(column(name, schema.field(name).type) for name in names)).with_nulls

    @cached_property
    def exact(self) -> bool:
        """Return whether equal hashes imply equal keys, so that values need not be compared."""
        return is_exact([part.type for part in self.parts])

    @property
    def with_nulls(self) -> Key:
        """Return the key with NULL as a value. Rows that can match are partitioned as by the key itself."""
        return replace(self, null_safe=frozenset(range(len(self.parts))))

    @cached_property
    def text(self) -> str:
        """Return the text of the key, which EXPLAIN shows and the id of an arrangement contains.

        Different keys have different texts, so quotes are removed only from plain names.
        """
        if self.whole:
            return "*"
        return ", ".join(_shown(p) + (" or NULL" if n in self.null_safe else "") for n, p in enumerate(self.parts))


@dataclass(frozen=True)
class Arrangement:
    """The rows of a relation indexed by a key, shared by all views that look them up by this key.

    A *lean* arrangement has only what lookups by its key can find and read: no row whose key matches nothing, and only
    the columns that some view reads. The relation has all its rows elsewhere.
    """

    relation: RelationId
    key: Key
    schema: pa.Schema
    order: str | None = None
    """A timestamp, date, integer or sort key column by which the rows of a key are sorted, NULL first."""
    is_lean: bool = False
    """Whether it is lean. Its runs may have more columns than its schema: those of views that were dropped."""

    @classmethod
    def by_row(cls, relation: RelationId, schema: pa.Schema) -> Arrangement:
        """Return the arrangement by the whole row, in which NULL is a value."""
        return cls(relation, replace(Key.of(schema), whole=True), schema)

    def with_columns(self, names: Collection[str]) -> Arrangement:
        """Return the lean arrangement with these columns, and those of its key and its order."""
        kept = {*names, *(name for part in self.key.parts for name in part.columns), self.order}
        return replace(self, schema=pa.schema([f for f in self.schema if f.name in kept]), is_lean=True)

    @cached_property
    def id(self) -> str:
        """Return the stable identity: relation, key and order."""
        inside = "" if self.order is None else f"; {_shown(column(self.order, self.schema.field(self.order).type))}"
        return f"{self.relation}[{self.key.text}{inside}]"
