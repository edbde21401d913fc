"""Relations in Python: queries put together with methods. They become SQL text, and so the same plan as SQL."""

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

    `item` stands in FROM: a name, a query in parentheses, or a join; `time` is that of FOR SYSTEM_TIME AS OF. Without a
    home a relation is text, which can be put together and not asked.

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
        """A source, a view or notes of one (`view.late`) by name."""
        return cls(readable(home.catalog, name).name, home=home)

    def relation(self) -> Relation:
        """This."""
        return self

    def alias(self, name: str) -> Relation:
        """The same relation under another name, as a self-join needs."""
        return replace(self._of(name, replace(self, time="")._item()), time=self.time)

    def as_of(self, time: str = "CURRENT_TIMESTAMP") -> Relation:
        """The right side of a join, as it was at a time of the left side; or as it is when a row of that comes.

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
        """Pairs with another relation: `on` a SQL condition, or `using` columns of one name."""
        return self._joined("JOIN", other, on, using)

    def left_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs, and the rows of this relation that have no partner, padded with NULL."""
        return self._joined("LEFT JOIN", other, on, using)

    def right_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs, and the rows of the other relation that have no partner, padded with NULL."""
        return self._joined("RIGHT JOIN", other, on, using)

    def full_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """Pairs, and the rows of either relation that have no partner, padded with NULL."""
        return self._joined("FULL JOIN", other, on, using)

    def semi_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """The rows of this relation that have a partner, each once; the other's columns are gone."""
        return self._joined("LEFT SEMI JOIN", other, on, using)

    def anti_join(self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None) -> Relation:
        """The rows of this relation that have no partner; the other's columns are gone.

        >>> Relation("orders").anti_join(Relation("payments"), on="orders.id = payments.order").query
        'SELECT * FROM `orders` AS `orders` LEFT ANTI JOIN `payments` AS `payments` ON orders.id = payments.order'
        """
        return self._joined("LEFT ANTI JOIN", other, on, using)

    def full_anti_join(
        self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """The rows of either relation that have no partner, padded with NULL."""
        return self._joined("FULL ANTI JOIN", other, on, using)

    def right_semi_join(
        self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """The rows of the other relation that have a partner here, each once; this one's columns are gone."""
        return self._joined("RIGHT SEMI JOIN", other, on, using)

    def right_anti_join(
        self, other: Selection, *, on: str | None = None, using: str | list[str] | None = None
    ) -> Relation:
        """The rows of the other relation that have no partner here; this one's columns are gone."""
        return self._joined("RIGHT ANTI JOIN", other, on, using)

    def asof_join(self, other: Selection, *, match: str, on: str | None = None) -> Relation:
        """Each row with the version of the other relation that was valid then: the latest by the condition `match`.

        >>> Relation("orders").asof_join(Relation("rates"), match="at >= since", on="cur = code").query
        'SELECT * FROM `orders` AS `orders` ASOF JOIN `rates` AS `rates` MATCH_CONDITION (at >= since) ON cur = code'
        """
        return self._as_of("ASOF JOIN", other, match, on)

    def asof_left_join(self, other: Selection, *, match: str, on: str | None = None) -> Relation:
        """The same, and rows for which no version was valid, padded with NULL."""
        return self._as_of("ASOF LEFT JOIN", other, match, on)

    def cross_join(self, other: Selection) -> Relation:
        """Every row with every row of another relation."""
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
        """The rows with what a Python function answers about each: `columns` are the names and types of the answers.

        The function takes a row as a dict and gives a dict of the answers' columns, or None for NULLs; with `batch`, a
        table of up to that many rows and gives one of as many. `async def` or plain; it must be importable by workers,
        so no lambda, and is allowed by this call. At most `concurrency` calls of a task are out at a time; one is given
        up after `timeout` seconds, and tried `retries` times more.

        >>> Relation("orders").enrich("shop.rates:lookup", columns={"rate": "DOUBLE"}, retries=2).query
        "SELECT * FROM ENRICH(TABLE `orders`, 'shop.rates:lookup', '`rate` DOUBLE', retries => 2) AS `orders`"
        """
        call = enrich_call(
            self._item(), function, columns, concurrency=concurrency, timeout=timeout, retries=retries, batch=batch
        )
        return self._of(self.name, call)

    def where(self, condition: str) -> Relation:
        """The rows for which a SQL condition is true."""
        base = self._rows()
        return replace(base, conditions=(*base.conditions, condition))

    def select(self, *columns: str) -> Relation:
        """Columns: SQL expressions, with AS for a new name."""
        return replace(self._rows(), listed=columns)

    def aggregate(self, *columns: str, by: str | list[str] | None = None, having: str | None = None) -> Relation:
        """Groups `by` SQL expressions, windows among them; all rows are one group without. Columns as in `select`.

        >>> Relation("orders").aggregate("item", "count(*) AS n", by="item", having="n > 1").query
        'SELECT item, count(*) AS n FROM `orders` AS `orders` GROUP BY item HAVING n > 1'
        """
        keys = [by] if isinstance(by, str) else by or []
        groups = f" GROUP BY {', '.join(keys)}" if keys else ""
        groups += "" if having is None else f" HAVING {having}"
        return replace(self._rows(), listed=columns, groups=groups)

    def emit(self, policy: str) -> Relation:
        """When changes of a view of it come out: `FINAL`, `EVERY INTERVAL …`, `WHEN WATERMARK PAST …`. Say it last.

        >>> Relation("orders").select("id", "ts").emit("WHEN WATERMARK PAST ts").query
        'SELECT id, ts FROM `orders` AS `orders` EMIT WHEN WATERMARK PAST ts'
        """
        return replace(self, emission=policy)

    def distinct(self) -> Relation:
        """Each row once."""
        return replace(self, is_distinct=True)

    def union_all(self, other: Selection) -> Relation:
        """The rows of both; columns go by position."""
        return self._combined("UNION ALL", other)

    def intersect(self, other: Selection) -> Relation:
        """The rows that both have, each once; columns go by position, and NULL equals NULL."""
        return self._combined("INTERSECT", other)

    def intersect_all(self, other: Selection) -> Relation:
        """The same, each as often as both have it."""
        return self._combined("INTERSECT ALL", other)

    def subtract(self, other: Selection) -> Relation:
        """The rows that the other relation does not have, each once; columns go by position, and NULL equals NULL.

        >>> Relation("orders").select("item").subtract(Relation("items").select("item")).query
        'SELECT * FROM (SELECT item FROM orders EXCEPT SELECT item FROM items)'
        """
        return self._combined("EXCEPT", other)

    def except_all(self, other: Selection) -> Relation:
        """The rows, each as many times more often as the other relation has it less often."""
        return self._combined("EXCEPT ALL", other)

    def to(self, name: str, form: str | None = None, **options: object) -> None:
        """Keep it up to date as a view of that name; with a format and its options, send its changes on as well."""
        self._define(name, form, options)

    def through(self, name: str, form: str | None = None, **options: object) -> Relation:
        """Keep it up to date as a view of that name, and go on from there."""
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
        """Whether this is what its rows come from, with nothing done to them."""
        return not (self.conditions or self.listed or self.is_distinct or self.emission)

    def _rows(self) -> Relation:
        """This, or a query of it if it has columns already."""
        return self._nested() if self.listed or self.is_distinct or self.emission else self

    def _right(self) -> str:
        """What stands right of JOIN: a join in parentheses, as its own ON must not be taken for the outer one."""
        return f"({self._from()})" if self.is_join and self._is_bare else self._from()

    def _from(self) -> str:
        return self._base() if self._is_bare else self._nested()._base()

    def _base(self) -> str:
        """What the rows come from, before conditions and columns of its own."""
        item = self.item or quoted(self.name)
        if self.time:
            return f"{item} FOR SYSTEM_TIME AS OF {self.time} AS {quoted(self.name)}"
        return item if not self.name or item == quoted(self.name) else f"{item} AS {quoted(self.name)}"

    def _item(self) -> str:
        """This as one thing: a name, or a query in parentheses."""
        is_one = self._is_bare and not self.is_join and not self.time
        return self.item or quoted(self.name) if is_one else f"({self._ended().query})"

    def _nested(self) -> Relation:
        return self._of(self.name, f"({self._ended().query})")

    def _of(self, name: str, item: str) -> Relation:
        return Relation(name, item, home=self.home)

    def _ended(self) -> Relation:
        """This, to be part of another query."""
        if self.emission:
            raise InvalidSql(
                f"EMIT {self.emission} ends a query, and nothing can be made of it but a view",
                detail=self.query,
                hint="say emit(…) last; or make a view of it, and read that",
            )
        return self
