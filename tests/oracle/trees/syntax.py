"""SQL as a tree: two texts, ours and DuckDB's, and every way to make it smaller by one step.

A smaller tree need not be valid SQL. Who shrinks a failing tree asks DuckDB, which refuses what makes no sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

OURS, THEIRS = 0, 1


@dataclass(frozen=True)
class Node:
    """A template with numbered places for parts, as we write it and, where it differs, as DuckDB must.

    A node can be replaced by a node of the same `role` below it, and by each of `smaller`. Nodes without a role stay.
    """

    template: str
    parts: tuple[Node, ...] = ()
    role: str = ""
    theirs: str | None = None
    smaller: tuple[str, ...] = ()

    def text(self, side: int = OURS) -> str:
        """The SQL."""
        template = self.theirs if side == THEIRS and self.theirs is not None else self.template
        return template.format(*(part.text(side) for part in self.parts))

    def shrunk(self) -> Iterator[Node]:
        """All trees that are smaller by one step, the smallest first."""
        for text in self.smaller:
            if self.parts or text != self.template:
                yield Node(text, role=self.role)
        if self.role:
            yield from (node for part in self.parts for node in part.below(self.role))
        for place, part in enumerate(self.parts):
            for other in part.shrunk():
                yield replace(self, parts=(*self.parts[:place], other, *self.parts[place + 1 :]))

    def below(self, role: str) -> Iterator[Node]:
        """The topmost nodes of a role."""
        if self.role == role:
            yield self
        else:
            for part in self.parts:
                yield from part.below(role)


@dataclass(frozen=True)
class Listed(Node):
    """Parts with `template` between them, after a `prefix`. All but `least` of them can be left out."""

    prefix: str = ""
    least: int = 0

    def text(self, side: int = OURS) -> str:
        """The SQL; empty without parts."""
        template = self.theirs if side == THEIRS and self.theirs is not None else self.template
        return self.prefix * bool(self.parts) + template.join(part.text(side) for part in self.parts)

    def shrunk(self) -> Iterator[Node]:
        """All trees that are smaller by one step."""
        if len(self.parts) > 1 and not self.least:
            yield replace(self, parts=())
        if len(self.parts) > self.least:
            for place in range(len(self.parts)):
                yield replace(self, parts=self.parts[:place] + self.parts[place + 1 :])
        yield from super().shrunk()


def sql(text: str, theirs: str | None = None) -> Node:
    """Text without parts; braces stand for themselves."""
    return Node(_plain(text), theirs=None if theirs is None else _plain(theirs))


def listed(parts: Sequence[Node], between: str = ", ", *, prefix: str = "", least: int = 0) -> Listed:
    """A list that can lose parts."""
    return Listed(between, tuple(parts), prefix=prefix, least=least)


def optional(node: Node) -> Listed:
    """A node that can be left out."""
    return Listed("", (node,))


NOTHING = listed([])


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
