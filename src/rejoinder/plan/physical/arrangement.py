"""Keys, and arrangements: a relation's rows by key."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.ir.expression import Expression, column
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
    """What a delta is partitioned by or looked up with: expressions, each hashed as its own type.

    NULL equals nothing, but in the parts numbered in `null_safe`, where it equals NULL. `whole`: the key is the row.
    """

    parts: tuple[Expression, ...]
    null_safe: frozenset[int] = frozenset()
    whole: bool = False

    @property
    def exact(self) -> bool:
        """Equal hashes mean equal keys, so values need not be compared."""
        return is_exact([part.type for part in self.parts])

    @property
    def with_nulls(self) -> Key:
        """The same key with NULL as a value: its partitions are partitions of the key, for rows that can match."""
        return replace(self, null_safe=frozenset(range(len(self.parts))))

    @property
    def text(self) -> str:
        """The key as people see it, and the part of an arrangement's identity that tells its key.

        So different keys have different texts: quotes go only where a plain name cannot be taken for something else.
        """
        if self.whole:
            return "*"
        return ", ".join(_shown(p) + (" or NULL" if n in self.null_safe else "") for n, p in enumerate(self.parts))


@dataclass(frozen=True)
class Arrangement:
    """A relation's rows by key, shared by every view that looks them up that way.

    `order` names a column (a timestamp, date, integer or sort key) by which the rows of a key are sorted, NULL first.
    """

    relation: str
    key: Key
    schema: pa.Schema
    order: str | None = None

    @classmethod
    def by_row(cls, relation: str, schema: pa.Schema) -> Arrangement:
        """An arrangement by the whole row, in which NULL is a value like any other."""
        parts = tuple(column(f.name, f.type) for f in schema)
        return cls(relation, Key(parts, frozenset(range(len(parts))), whole=True), schema)

    @property
    def id(self) -> str:
        """Stable identity: relation, key and order."""
        inside = "" if self.order is None else f"; {_shown(column(self.order, self.schema.field(self.order).type))}"
        return f"{self.relation}[{self.key.text}{inside}]"
