"""Identities of relations and of columns; each has one text form, in which it is stored.

A relation is the rows of a source or some of them, a view, a side output, or what the plan derives from others. Code
asks the class and the fields of an identity. The text form names state in manifests, and streams in EXPLAIN. Only this
module parses it: the columns of an expression (`column_id`), and side outputs that users name (`side_output`).

- `orders`: every row that the source delivered;
- `orders#from@7`: the rows that it delivered after epoch 7, for a view STARTING AT an epoch;
- `orders#since@9`: the rows whose event times are not below that many microseconds, for a view STARTING AT a time;
- `orders#on-time`: without rows that were late when they came. A view starts with every row, late ones included, and
  its own watermark rules apply from then on. So the relation also names the last epoch in which a late row was left
  out before the view was created (`orders#on-time@7`): views between two late rows share it, others do not;
- `late_orders.late`, `orders.rejected`, `orders.changes`: side outputs of a view or a source;
- `distinct#5f1c00b2a4e3`: a derived relation, by the digest of its definition; `distinct#5f1c00b2a4e3/input`: what its
  operation reads; `late_orders/pending`: the changes of a view that are not emitted yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

NEVER = -1
"""In place of an epoch: no row was late yet."""

Output = Literal["late", "rejected", "changes"]


@dataclass(frozen=True)
class SourceRows:
    """The rows of a source, or some of them."""

    source: str
    start: int | None = None
    """Only rows delivered after this epoch."""
    time: int | None = None
    """Only rows whose event times are not below that many microseconds."""
    on_time: bool = False
    """Without late rows."""
    late: int = NEVER
    """If `on_time`: the last epoch in which a row was left out before the first view that reads it was created."""

    def __str__(self) -> str:
        text = self.source
        text += "" if self.start is None else f"#from@{self.start}"
        text += "" if self.time is None else f"#since@{self.time}"
        text += "#on-time" if self.on_time else ""
        return text + (f"@{self.late}" if self.late != NEVER else "")

    @property
    def starts(self) -> bool:
        """Whether rows from before a start are left out."""
        return self.start is not None or self.time is not None


@dataclass(frozen=True)
class ViewRows:
    """The rows of a view."""

    view: str

    def __str__(self) -> str:
        return self.view


@dataclass(frozen=True)
class SideOutput:
    """The late rows of a view, the rejected records of a source, or the changes of a source that keeps them."""

    owner: str
    output: Output

    def __str__(self) -> str:
        return f"{self.owner}.{self.output}"


@dataclass(frozen=True)
class DerivedRows:
    """The rows that an operation makes. Equal computations have equal digests."""

    kind: str
    """What the operation is called in messages."""
    digest: str

    def __str__(self) -> str:
        return f"{self.kind}#{self.digest}"


@dataclass(frozen=True)
class OperationInput:
    """The rows that an operation reads, where it keeps them."""

    of: Defined

    def __str__(self) -> str:
        return f"{self.of}/input"


@dataclass(frozen=True)
class PendingRows:
    """The changes of a view that are not emitted yet."""

    view: str
    gate: int = 0
    """The number of the gate, if the view has several."""

    def __str__(self) -> str:
        return f"{self.view}/pending{self.gate or ''}"


@dataclass(frozen=True)
class StoredRows:
    """A relation as it was before a hydration, which builds it a second time."""

    of: RelationId

    def __str__(self) -> str:
        return f"{self.of}/stored"


@dataclass(frozen=True)
class UnitRow:
    """The relation of one row without columns of its own, for aggregates without keys."""

    def __str__(self) -> str:
        return "unit#"


@dataclass(frozen=True)
class ColumnId:
    """A column of a query or a block: the number of its input, and its name there. Expressions hold the text form."""

    input: int
    name: str

    def __str__(self) -> str:
        return f"{self.input}.{self.name}"


UNIT = UnitRow()
"""The relation of one row that is always there. It gives an aggregate without keys its row."""
Defined = DerivedRows | ViewRows
"""A relation that a query defines."""

RelationId = SourceRows | ViewRows | SideOutput | DerivedRows | OperationInput | PendingRows | StoredRows | UnitRow


def source_of(relation: RelationId) -> str:
    """The name of the source whose rows a relation holds; of any other relation, its own name."""
    return relation.source if isinstance(relation, SourceRows) else str(relation)


def all_rows(relation: RelationId) -> RelationId:
    """All rows of a source in place of some of them; any other relation as it is."""
    return SourceRows(relation.source) if isinstance(relation, SourceRows) else relation


def is_on_time(relation: RelationId) -> bool:
    """Whether late rows of a source are left out of a relation."""
    return isinstance(relation, SourceRows) and relation.on_time


def column_text(number: int, name: str) -> str:
    """The text form of a column of input `number`, by which expressions name it."""
    return str(ColumnId(number, name))


def column_part(column: str, part: str | int) -> str:
    """The text form of a column that is derived from another one, such as the start of a window."""
    return f"{column}/{part}"


@lru_cache(maxsize=65_536)
def column_id(text: str) -> ColumnId:
    """The column that an expression names."""
    number, _, name = text.partition(".")
    return ColumnId(int(number), name)


def side_output(name: str) -> SideOutput | None:
    """The side output that a user names, such as `orders.rejected`; None for any other name."""
    owner, _, output = name.rpartition(".")
    if not owner or output.lower() not in ("late", "rejected"):
        return None
    return SideOutput(owner, "late" if output.lower() == "late" else "rejected")


def owner_of(name: str) -> str:
    """The relation that a user names, itself or by one of its side outputs."""
    side = side_output(name)
    return name if side is None else side.owner
