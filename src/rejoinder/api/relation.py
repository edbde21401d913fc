"""Relations in Python: queries put together with methods. They become SQL text, and so the same plan as SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rejoinder.api.enriching import enrich_call
from rejoinder.errors import InvalidSql


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
    groups: str = ""
    is_distinct: bool = False
    is_join: bool = False
    emission: str = ""

    def alias(self, name: str) -> Relation:
        """The same relation under another name, as a self-join needs."""
        return Relation(name, f"{self._item()} AS {_quoted(name)}")

    def join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs with another relation: `on` a SQL condition, or `using` columns of one name."""
        return self._joined("JOIN", other, on, using)

    def left_join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs, and the rows of this relation that have no partner, padded with NULL."""
        return self._joined("LEFT JOIN", other, on, using)

    def right_join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs, and the rows of the other relation that have no partner, padded with NULL."""
        return self._joined("RIGHT JOIN", other, on, using)

    def full_join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs, and the rows of either relation that have no partner, padded with NULL."""
        return self._joined("FULL JOIN", other, on, using)

    def semi_join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """The rows of this relation that have a partner, each once; the other's columns are gone."""
        return self._joined("LEFT SEMI JOIN", other, on, using)

    def anti_join(self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """The rows of this relation that have no partner; the other's columns are gone.

        >>> Relation("orders").anti_join(Relation("payments"), on="orders.id = payments.order").query
        'SELECT * FROM `orders` AS `orders` LEFT ANTI JOIN `payments` AS `payments` ON orders.id = payments.order'
        """
        return self._joined("LEFT ANTI JOIN", other, on, using)

    def full_anti_join(
        self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """The rows of either relation that have no partner, padded with NULL."""
        return self._joined("FULL ANTI JOIN", other, on, using)

    def right_semi_join(
        self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """The rows of the other relation that have a partner here, each once; this one's columns are gone."""
        return self._joined("RIGHT SEMI JOIN", other, on, using)

    def right_anti_join(
        self, other: Relation, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """The rows of the other relation that have no partner here; this one's columns are gone."""
        return self._joined("RIGHT ANTI JOIN", other, on, using)

    def asof_join(self, other: Relation, *, match: str, on: str | None = None) -> Relation:
        """Each row with the version of the other relation that was valid then: the latest by the condition `match`.

        >>> Relation("orders").asof_join(Relation("rates"), match="at >= since", on="cur = code").query
        'SELECT * FROM `orders` AS `orders` ASOF JOIN `rates` AS `rates` MATCH_CONDITION (at >= since) ON cur = code'
        """
        return self._as_of("ASOF JOIN", other, match, on)

    def asof_left_join(self, other: Relation, *, match: str, on: str | None = None) -> Relation:
        """The same, and rows for which no version was valid, padded with NULL."""
        return self._as_of("ASOF LEFT JOIN", other, match, on)

    def cross_join(self, other: Relation) -> Relation:
        """Every row with every row of another relation."""
        return Relation("", f"{self._from()} CROSS JOIN {other._right()}", is_join=True)

    def enrich(
        self,
        function: Callable[..., object] | str,
        *,
        columns: Mapping[str, str],
        concurrency: int = 16,
        timeout: float | None = None,
        retries: int = 0,
        batch: int | None = None,
    ) -> Relation:
        """The rows with what a Python function answers about each: `columns` are the names and types of the answers.

        The function takes a row as a dict and gives a dict of the answers' columns, or None for NULLs; with `batch`, a
        table of up to that many rows and gives one of as many. `async def` or plain; it must be importable by workers,
        so no lambda. At most `concurrency` calls of a task are out at a time; one is given up after `timeout` seconds,
        and tried `retries` times more.

        >>> Relation("orders").enrich("shop.rates:lookup", columns={"rate": "DOUBLE"}, retries=2).query
        "SELECT * FROM ENRICH(TABLE `orders`, 'shop.rates:lookup', '`rate` DOUBLE', retries => 2) AS `orders`"
        """
        call = enrich_call(
            self._item(), function, columns, concurrency=concurrency, timeout=timeout, retries=retries, batch=batch
        )
        return Relation(self.name, call + (f" AS {_quoted(self.name)}" if self.name else ""))

    def where(self, condition: str) -> Relation:
        """The rows for which a SQL condition is true."""
        base = self._rows()
        return Relation(base.name, base.source, (*base.conditions, condition), is_join=base.is_join)

    def select(self, *columns: str) -> Relation:
        """Columns: SQL expressions, with AS for a new name."""
        base = self._rows()
        return Relation(base.name, base.source, base.conditions, columns, is_join=base.is_join)

    def aggregate(self, *columns: str, by: str | list[str] | None = None, having: str | None = None) -> Relation:
        """Groups `by` SQL expressions, windows among them; all rows are one group without. Columns as in `select`.

        >>> Relation("orders").aggregate("item", "count(*) AS n", by="item", having="n > 1").query
        'SELECT item, count(*) AS n FROM `orders` AS `orders` GROUP BY item HAVING n > 1'
        """
        base = self._rows()
        keys = [by] if isinstance(by, str) else by or []
        groups = f" GROUP BY {', '.join(keys)}" if keys else ""
        groups += "" if having is None else f" HAVING {having}"
        return Relation(base.name, base.source, base.conditions, columns, groups, is_join=base.is_join)

    def emit(self, policy: str) -> Relation:
        """When changes of a view of it come out: `FINAL`, `EVERY INTERVAL …`, `WHEN WATERMARK PAST …`. Say it last.

        >>> Relation("orders").select("id", "ts").emit("WHEN WATERMARK PAST ts").query
        'SELECT id, ts FROM `orders` AS `orders` EMIT WHEN WATERMARK PAST ts'
        """
        return replace(self, emission=policy)

    def distinct(self) -> Relation:
        """Each row once."""
        return replace(self, is_distinct=True)

    def union_all(self, other: Relation) -> Relation:
        """The rows of both; columns go by position."""
        return Relation("", f"({self._ended().query} UNION ALL {other._ended().query})")

    @property
    def query(self) -> str:
        """The SQL text."""
        where = f" WHERE {' AND '.join(f'({c})' for c in self.conditions)}" if self.conditions else ""
        columns = ", ".join(self.columns) or "*"
        emission = f" EMIT {self.emission}" if self.emission else ""
        distinct = "DISTINCT " if self.is_distinct else ""
        return f"SELECT {distinct}{columns} FROM {self._base()}{where}{self.groups}{emission}"

    def _joined(self, words: str, other: Relation, on: str | None, using: str | list[str] | None) -> Relation:
        if (on is None) == (using is None):
            raise ValueError("give either on= or using=")
        names = [using] if isinstance(using, str) else using
        how = f"ON {on}" if names is None else f"USING ({', '.join(map(_quoted, names))})"
        return Relation("", f"{self._from()} {words} {other._right()} {how}", is_join=True)

    def _as_of(self, words: str, other: Relation, match: str, on: str | None) -> Relation:
        how = f"MATCH_CONDITION ({match})" + ("" if on is None else f" ON {on}")
        return Relation("", f"{self._from()} {words} {other._right()} {how}", is_join=True)

    @property
    def _is_bare(self) -> bool:
        """Whether this is what its rows come from, with nothing done to them."""
        return not (self.conditions or self.columns or self.is_distinct or self.emission)

    def _rows(self) -> Relation:
        """This, or a query of it if it has columns already."""
        return self._nested() if self.columns or self.is_distinct or self.emission else self

    def _right(self) -> str:
        """What stands right of JOIN: a join in parentheses, as its own ON must not be taken for the outer one."""
        return f"({self._from()})" if self.is_join and self._is_bare else self._from()

    def _from(self) -> str:
        return self._base() if self._is_bare else self._nested()._base()

    def _base(self) -> str:
        """What the rows come from, before conditions and columns of its own."""
        return self.source or f"{_quoted(self.name)} AS {_quoted(self.name)}"

    def _item(self) -> str:
        return _quoted(self.name) if self._is_bare and not self.source else f"({self._ended().query})"

    def _nested(self) -> Relation:
        return Relation(self.name, f"({self._ended().query})" + (f" AS {_quoted(self.name)}" if self.name else ""))

    def _ended(self) -> Relation:
        """This, to be part of another query."""
        if self.emission:
            raise InvalidSql(
                f"EMIT {self.emission} ends a query, and nothing can be made of it but a view",
                detail=self.query,
                hint="say emit(…) last; or make a view of it, and read that",
            )
        return self


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
