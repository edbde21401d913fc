"""The SQL text of a relation: the clauses of one SELECT, and when a further clause needs a query around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoinder.api.relations.selection import Home, Selection, refuse_other_home
from rejoinder.errors import InvalidSql
from rejoinder.sql.statements.query_text import name_text as quoted


@dataclass(frozen=True, repr=False)
class QueryBuilder(Selection):
    """The clauses of a SELECT. `Relation` adds the methods that users call; nothing else subclasses this."""

    name: str
    """The alias of the FROM item; empty for a join."""
    item: str = ""
    """The FROM item: a name, a query in parentheses, or a join. Empty if it is `name`."""
    conditions: tuple[str, ...] = ()
    """The conditions of WHERE."""
    listed: tuple[str, ...] = ()
    """The SELECT list; all columns if empty."""
    groups: str = ""
    """GROUP BY and HAVING."""
    qualified: tuple[str, ...] = ()
    """The conditions of QUALIFY."""
    order: tuple[str, ...] = ()
    """The expressions of ORDER BY."""
    most: int | None = None
    """The number of LIMIT."""
    skipped: int = 0
    """The number of OFFSET."""
    is_distinct: bool = False
    is_join: bool = False
    time: str = ""
    """The time of FOR SYSTEM_TIME AS OF."""
    emission: str = ""
    """The policy of EMIT."""
    home: Home | None = field(default=None, repr=False)
    """Where the names are defined. Without it, a relation is only text and cannot be queried."""

    @property
    def query(self) -> str:
        """The SQL text."""
        parts = [f"SELECT {'DISTINCT ' if self.is_distinct else ''}{', '.join(self.listed) or '*'} FROM {self._base()}"]
        parts += [f"WHERE {_all(self.conditions)}"] if self.conditions else []
        parts += [self.groups] if self.groups else []
        parts += [f"QUALIFY {_all(self.qualified)}"] if self.qualified else []
        parts += [f"ORDER BY {', '.join(self.order)}"] if self.order else []
        parts += [f"LIMIT {self.most}"] if self.most is not None else []
        parts += [f"OFFSET {self.skipped}"] if self.skipped else []
        parts += [f"EMIT {self.emission}"] if self.emission else []
        return " ".join(parts)

    def _combined(self, clause: str, other: Selection) -> str:
        """Return a set operation in parentheses."""
        return f"({self._operand()} {clause} {self._at_home(other)._operand()})"

    def _beside(self, words: str, other: Selection, how: str) -> str:
        """Return a join."""
        return f"{self._from()} {words} {self._at_home(other)._right()}{how}"

    def _at_home(self, other: Selection) -> QueryBuilder:
        refuse_other_home(self, other)
        return other.relation()

    @property
    def _is_bare(self) -> bool:
        """Whether this is only a FROM item, without further clauses."""
        return not (self.conditions or self._has_columns)

    @property
    def _has_columns(self) -> bool:
        """Whether clauses that come after WHERE are set: a further WHERE or SELECT list needs a query around them."""
        return bool(self.listed or self.qualified or self.is_distinct or self.emission) or self._is_cut

    @property
    def _is_cut(self) -> bool:
        """Whether ORDER BY, LIMIT or OFFSET are set."""
        return bool(self.order or self.skipped) or self.most is not None

    def _right(self) -> str:
        """Return the right side of JOIN. A join is in parentheses, so that its ON is not read as the outer one."""
        return f"({self._from()})" if self.is_join and self._is_bare else self._from()

    def _from(self) -> str:
        return self._base() if self._is_bare else _aliased(f"({self._ended().query})", self.name)

    def _base(self) -> str:
        """Return the FROM item, with its alias."""
        item = self.item or quoted(self.name)
        if self.time:
            return f"{item} FOR SYSTEM_TIME AS OF {self.time} AS {quoted(self.name)}"
        return _aliased(item, self.name)

    def _item(self) -> str:
        """Return this relation as one FROM item: a name, or a query in parentheses."""
        is_one = self._is_bare and not self.is_join and not self.time
        return self.item or quoted(self.name) if is_one else f"({self._ended().query})"

    def _operand(self) -> str:
        """Return this relation as an operand of a set operation."""
        query = self._ended().query
        return f"({query})" if self._is_cut else query

    def _ended(self) -> QueryBuilder:
        """Return this relation as a part of another query. Raises `InvalidSql` if it has an EMIT clause."""
        if self.emission:
            raise InvalidSql(
                f"EMIT {self.emission} must end a query, which can only become a view",
                detail=self.query,
                hint="call emit(…) last; or create a view of it, and read that",
            )
        return self


def _aliased(item: str, name: str) -> str:
    return item if not name or item == quoted(name) else f"{item} AS {quoted(name)}"


def _all(conditions: tuple[str, ...]) -> str:
    return " AND ".join(f"({condition})" for condition in conditions)
