"""Relations in Python: queries built with methods. They become SQL text, so they have the same plan as SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rejoinder.api.relations.enrich_arguments import enrich_call
from rejoinder.api.relations.selection import Home, Selection, refuse_other_home
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.statements.query_text import name_text as quoted


@dataclass(frozen=True, repr=False)
class Relation(Selection):
    """A source, a view or a query over them. The other side of a join may be a stream or a table as well.

    `item` is the FROM item: a name, a query in parentheses, or a join. `time` is that of FOR SYSTEM_TIME AS OF. Without
    a home, a relation is only text and cannot be queried.

    >>> orders, prices = Relation("orders"), Relation("prices")
    >>> orders.join(prices, using="item").where("price > 2").select("id", "price").query
    'SELECT id, price FROM orders JOIN prices USING (item) WHERE (price > 2)'
    """

    name: str
    item: str = ""
    conditions: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    groups: str = ""
    is_distinct: bool = False
    is_join: bool = False
    time: str = ""
    emission: str = ""
    home: Home | None = field(default=None, repr=False)

    @classmethod
    def of(cls, home: Home, name: str) -> Relation:
        """Return a source, a view or a side output (`view.late`) by name. Raises `UnknownName`."""
        return cls(readable(home.catalog, name).name, home=home)

    def relation(self) -> Relation:
        """Return this relation."""
        return self

    def alias(self, name: str) -> Relation:
        """Return the same relation with another name, as a self-join needs."""
        return replace(self._of(name, replace(self, time="")._item()), time=self.time)

    def as_of(self, time: str = "CURRENT_TIMESTAMP") -> Relation:
        """Return the right side of a join as of a time of the left side, or as of the arrival of a left row.

        >>> Relation("orders").left_join(Relation("rates").as_of("orders.at"), on="cur = code").query
        'SELECT * FROM orders LEFT JOIN rates FOR SYSTEM_TIME AS OF orders.at AS rates ON cur = code'
        """
        if self.is_join or self._item().startswith("("):
            raise Unsupported(
                "a query as of a time is not supported",
                detail=self.query,
                hint='make a view of it, and read that: .through("name").as_of(…)',
            )
        return replace(self, time=time)

    def join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Join with another relation: `on` a SQL condition, or `using` columns with the same name."""
        return self._joined("JOIN", other, on, using)

    def left_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Join, and keep rows of this relation without a match, padded with NULL."""
        return self._joined("LEFT JOIN", other, on, using)

    def right_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Join, and keep rows of the other relation without a match, padded with NULL."""
        return self._joined("RIGHT JOIN", other, on, using)

    def full_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Join, and keep rows of either relation without a match, padded with NULL."""
        return self._joined("FULL JOIN", other, on, using)

    def semi_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Keep the rows of this relation with a match, each once, without columns of the other relation."""
        return self._joined("LEFT SEMI JOIN", other, on, using)

    def anti_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Keep the rows of this relation without a match, without columns of the other relation.

        >>> Relation("orders").anti_join(Relation("payments"), on="orders.id = payments.order").query
        'SELECT * FROM `orders` AS `orders` LEFT ANTI JOIN `payments` AS `payments` ON orders.id = payments.order'
        """
        return self._joined("LEFT ANTI JOIN", other, on, using)

    def full_anti_join(
        self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """Keep the rows of either relation without a match, padded with NULL."""
        return self._joined("FULL ANTI JOIN", other, on, using)

    def right_semi_join(
        self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """Keep the rows of the other relation with a match, each once, without columns of this relation."""
        return self._joined("RIGHT SEMI JOIN", other, on, using)

    def right_anti_join(
        self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """Keep the rows of the other relation without a match, without columns of this relation."""
        return self._joined("RIGHT ANTI JOIN", other, on, using)

    def asof_join(self, other: Selection, *, match: str, on: str | None = None) -> Relation:
        """Join each row with the version of the other relation that was valid: the latest by the condition `match`.

        >>> Relation("orders").asof_join(Relation("rates"), match="at >= since", on="cur = code").query
        'SELECT * FROM `orders` AS `orders` ASOF JOIN `rates` AS `rates` MATCH_CONDITION (at >= since) ON cur = code'
        """
        return self._as_of("ASOF JOIN", other, match, on)

    def asof_left_join(self, other: Selection, *, match: str, on: str | None = None) -> Relation:
        """Join as in `asof_join`, and keep rows without a valid version, padded with NULL."""
        return self._as_of("ASOF LEFT JOIN", other, match, on)

    def cross_join(self, other: Selection) -> Relation:
        """Join every row with every row of another relation."""
        return self._beside("CROSS JOIN", other, "")

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
        """Add columns that a Python function computes for each row: `columns` are their names and types.

        The function takes a row as a dict and returns a dict of the new columns, or None for NULLs. With `batch`, it
        takes an Arrow table of up to that many rows and returns one of the same length. It may be `async def`. Workers
        must be able to import it, so it cannot be a lambda. This call allows it. A task has at most `concurrency` calls
        at a time. A call fails after `timeout` seconds, and is retried `retries` times.

        >>> Relation("orders").enrich("shop.rates:lookup", columns={"rate": "DOUBLE"}, retries=2).query
        "SELECT * FROM ENRICH(TABLE `orders`, 'shop.rates:lookup', '`rate` DOUBLE', retries => 2) AS `orders`"
        """
        call = enrich_call(
            self._item(), function, columns, concurrency=concurrency, timeout=timeout, retries=retries, batch=batch
        )
        return self._of(self.name, call)

    def where(self, condition: str) -> Relation:
        """Keep the rows for which a SQL condition is true."""
        base = self._rows()
        return replace(base, conditions=(*base.conditions, condition))

    def select(self, *columns: str) -> Relation:
        """Select columns: SQL expressions, with AS for a new name."""
        return replace(self._rows(), listed=columns)

    def aggregate(self, *columns: str, by: str | list[str] | None = None, having: str | None = None) -> Relation:
        """Group `by` SQL expressions or windows; without them, all rows are one group. Columns as in `select`.

        >>> Relation("orders").aggregate("item", "count(*) AS n", by="item", having="n > 1").query
        'SELECT item, count(*) AS n FROM `orders` AS `orders` GROUP BY item HAVING n > 1'
        """
        keys = [by] if isinstance(by, str) else by or []
        groups = f" GROUP BY {', '.join(keys)}" if keys else ""
        groups += "" if having is None else f" HAVING {having}"
        return replace(self._rows(), listed=columns, groups=groups)

    def emit(self, policy: str) -> Relation:
        """Set when a view emits changes: `FINAL`, `EVERY INTERVAL …`, `WHEN WATERMARK PAST …`. Call it last.

        >>> Relation("orders").select("id", "ts").emit("WHEN WATERMARK PAST ts").query
        'SELECT id, ts FROM `orders` AS `orders` EMIT WHEN WATERMARK PAST ts'
        """
        return replace(self, emission=policy)

    def distinct(self) -> Relation:
        """Keep each distinct row once."""
        return replace(self, is_distinct=True)

    def union_all(self, other: Selection) -> Relation:
        """Return the rows of both relations. Columns are matched by position."""
        return self._combined("UNION ALL", other)

    def intersect(self, other: Selection) -> Relation:
        """Return the rows that both relations have, each once. Columns are matched by position; NULL equals NULL."""
        return self._combined("INTERSECT", other)

    def intersect_all(self, other: Selection) -> Relation:
        """Return the rows that both relations have, each as often as in both."""
        return self._combined("INTERSECT ALL", other)

    def subtract(self, other: Selection) -> Relation:
        """Return the rows that the other relation does not have, each once. Columns are matched by position.

        >>> Relation("orders").select("item").subtract(Relation("items").select("item")).query
        'SELECT * FROM (SELECT item FROM orders EXCEPT SELECT item FROM items)'
        """
        return self._combined("EXCEPT", other)

    def except_all(self, other: Selection) -> Relation:
        """Return the rows, each as many times as it occurs here more often than in the other relation."""
        return self._combined("EXCEPT ALL", other)

    def to(self, name: str, form: str | None = None, **options: object) -> None:
        """Create a view; with a format and its options, also a sink."""
        self._define(name, form, options)

    def through(self, name: str, form: str | None = None, **options: object) -> Relation:
        """Create a view, and return a relation that reads the view."""
        self._define(name, form, options)
        return Relation(name, home=self.home)

    @property
    def query(self) -> str:
        """The SQL text."""
        where = f" WHERE {' AND '.join(f'({c})' for c in self.conditions)}" if self.conditions else ""
        columns = ", ".join(self.listed) or "*"
        emission = f" EMIT {self.emission}" if self.emission else ""
        distinct = "DISTINCT " if self.is_distinct else ""
        return f"SELECT {distinct}{columns} FROM {self._base()}{where}{self.groups}{emission}"

    def _combined(self, clause: str, other: Selection) -> Relation:
        refuse_other_home(self, other)
        right = other.relation()
        item = f"({self._ended().query} {clause} {right._ended().query})"
        return Relation("", item, home=self.home or right.home)

    def _joined(self, words: str, other: Selection, on: str | None, using: str | list[str] | None) -> Relation:
        if (on is None) == (using is None):
            raise ValueError("give either on= or using=")
        names = [using] if isinstance(using, str) else using
        return self._beside(words, other, f" ON {on}" if names is None else f" USING ({', '.join(map(quoted, names))})")

    def _as_of(self, words: str, other: Selection, match: str, on: str | None) -> Relation:
        return self._beside(words, other, f" MATCH_CONDITION ({match})" + ("" if on is None else f" ON {on}"))

    def _beside(self, words: str, other: Selection, how: str) -> Relation:
        refuse_other_home(self, other)
        right = other.relation()
        item = f"{self._from()} {words} {right._right()}{how}"
        return Relation("", item, is_join=True, home=self.home or right.home)

    @property
    def _is_bare(self) -> bool:
        """Whether this is only a FROM item, without conditions, columns, DISTINCT or EMIT."""
        return not (self.conditions or self.listed or self.is_distinct or self.emission)

    def _rows(self) -> Relation:
        """Return this relation, or a query of it if it has columns already."""
        return self._nested() if self.listed or self.is_distinct or self.emission else self

    def _right(self) -> str:
        """Return the right side of JOIN. A join is in parentheses, so that its ON is not read as the outer one."""
        return f"({self._from()})" if self.is_join and self._is_bare else self._from()

    def _from(self) -> str:
        return self._base() if self._is_bare else self._nested()._base()

    def _base(self) -> str:
        """Return the FROM item, with its alias."""
        item = self.item or quoted(self.name)
        if self.time:
            return f"{item} FOR SYSTEM_TIME AS OF {self.time} AS {quoted(self.name)}"
        return item if not self.name or item == quoted(self.name) else f"{item} AS {quoted(self.name)}"

    def _item(self) -> str:
        """Return this relation as one FROM item: a name, or a query in parentheses."""
        is_one = self._is_bare and not self.is_join and not self.time
        return self.item or quoted(self.name) if is_one else f"({self._ended().query})"

    def _nested(self) -> Relation:
        return self._of(self.name, f"({self._ended().query})")

    def _of(self, name: str, item: str) -> Relation:
        return Relation(name, item, home=self.home)

    def _ended(self) -> Relation:
        """Return this relation as a part of another query. Raises `InvalidSql` if it has an EMIT clause."""
        if self.emission:
            raise InvalidSql(
                f"EMIT {self.emission} must end a query, which can only become a view",
                detail=self.query,
                hint="call emit(…) last; or create a view of it, and read that",
            )
        return self
