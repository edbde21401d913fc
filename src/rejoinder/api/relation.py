"""Relations in Python: queries put together with methods. They become SQL text, and so the same plan as SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """A source, a view or a query over them. Immutable: every method gives a new one.

    >>> orders, prices = Relation("orders"), Relation("prices")
    >>> orders.join(prices, using="item").where("price > 2").select("id", "price").query
    'SELECT id, price FROM `orders` AS `orders` JOIN `prices` AS `prices` USING (`item`) WHERE (price > 2)'
    """

    name: str
    source: str = ""
    conditions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    is_distinct: bool = False

    def alias(self, name: str) -> Relation:
        """The same relation under another name, as a self-join needs."""
        return Relation(name, f"{self._item()} AS {_quoted(name)}")

    def join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs with another relation: `on` a SQL condition, or `using` columns of one name."""
        if (on is None) == (using is None):
            raise ValueError("give either on= or using=")
        names = [using] if isinstance(using, str) else using
        how = f"ON {on}" if names is None else f"USING ({', '.join(map(_quoted, names))})"
        return Relation("", f"{self._from()} JOIN {other._from()} {how}")

    def where(self, condition: str) -> Relation:
        """The rows for which a SQL condition is true."""
        base = self if not (self.columns or self.is_distinct) else self._nested()
        return Relation(base.name, base.source, (*base.conditions, condition))

    def select(self, *columns: str) -> Relation:
        """Columns: SQL expressions, with AS for a new name."""
        base = self if not (self.columns or self.is_distinct) else self._nested()
        return Relation(base.name, base.source, base.conditions, columns)

    def distinct(self) -> Relation:
        """Each row once."""
        return Relation(self.name, self.source, self.conditions, self.columns, True)

    def union_all(self, other: Relation) -> Relation:
        """The rows of both; columns go by position."""
        return Relation("", f"({self.query} UNION ALL {other.query})")

    @property
    def query(self) -> str:
        """The SQL text."""
        where = f" WHERE {' AND '.join(f'({c})' for c in self.conditions)}" if self.conditions else ""
        columns = ", ".join(self.columns) or "*"
        return f"SELECT {'DISTINCT ' if self.is_distinct else ''}{columns} FROM {self._from()}{where}"

    def _from(self) -> str:
        if self.conditions or self.columns or self.is_distinct:
            return self._nested()._from()
        return self.source or f"{_quoted(self.name)} AS {_quoted(self.name)}"

    def _item(self) -> str:
        plain = not (self.source or self.conditions or self.columns or self.is_distinct)
        return _quoted(self.name) if plain else f"({self.query})"

    def _nested(self) -> Relation:
        return Relation(self.name, f"({self.query})" + (f" AS {_quoted(self.name)}" if self.name else ""))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
