"""Relations in Python: queries built with methods. They become SQL text, so they have the same plan as SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rejoinder.api.relations.enrich_arguments import enrich_call
from rejoinder.api.relations.query_builder import QueryBuilder
from rejoinder.api.relations.selection import Home, Selection
from rejoinder.errors import Unsupported
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.statements.query_text import name_text as quoted


@dataclass(frozen=True, repr=False)
class Relation(QueryBuilder):
    """A source, a view or a query over them. The other side of a join may be a stream or a table as well.

    >>> orders, prices = Relation("orders"), Relation("prices")
    >>> orders.join(prices, using="item").where("price > 2").select("id", "price").query
    'SELECT id, price FROM orders JOIN prices USING (item) WHERE (price > 2)'
    """

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
        return self._join("ASOF JOIN", other, _match(match, on))

    def asof_left_join(self, other: Selection, *, match: str, on: str | None = None) -> Relation:
        """Join as in `asof_join`, and keep rows without a valid version, padded with NULL."""
        return self._join("ASOF LEFT JOIN", other, _match(match, on))

    def cross_join(self, other: Selection) -> Relation:
        """Join every row with every row of another relation."""
        return self._join("CROSS JOIN", other)

    def lateral_join(self, other: Selection, *, on: str = "TRUE") -> Relation:
        """Join each row with a query that refers to columns of this relation. Give the query an alias.

        >>> last = Relation("bids").where("bids.item = orders.item").order_by("at DESC").limit(1).alias("last")
        >>> print(Relation("orders").lateral_join(last).query.partition(" JOIN ")[2])
        LATERAL (SELECT * FROM bids WHERE (bids.item = orders.item) ORDER BY at DESC LIMIT 1) AS `last` ON TRUE
        """
        return self._join("JOIN LATERAL", other, f" ON {on}")

    def lateral_left_join(self, other: Selection, *, on: str = "TRUE") -> Relation:
        """Join as in `lateral_join`, and keep rows for which the query has no row, padded with NULL."""
        return self._join("LEFT JOIN LATERAL", other, f" ON {on}")

    def lateral_view(self, generator: str, *columns: str, outer: bool = False) -> Relation:
        """Join each row with the rows that a generator makes of it, as columns with the given names.

        With `outer`, a row for which the generator makes none is kept, padded with NULL.

        >>> Relation("orders").lateral_view("explode(items)", "item").select("id", "item").query
        'SELECT id, item FROM orders LATERAL VIEW explode(items) AS item'
        """
        names = f" AS {', '.join(map(quoted, columns))}" if columns else ""
        view = f"{self._from()} LATERAL VIEW {'OUTER ' if outer else ''}{generator}{names}"
        return Relation("", view, is_join=True, home=self.home)

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
        clauses = [f"GROUP BY {', '.join(keys)}"] if keys else []
        clauses += [] if having is None else [f"HAVING {having}"]
        return replace(self._rows(), listed=columns, groups=" ".join(clauses))

    def pivot(self, *aggregates: str, on: str, values: list[str]) -> Relation:
        """Group by the columns that are not named here, and make a column of each value: SQL literals, with AS.

        >>> Relation("sales").pivot("sum(n)", on="item", values=["'tea'", "'cup' AS cups"]).query
        "SELECT * FROM (SELECT * FROM sales PIVOT (sum(n) FOR item IN ('tea', 'cup' AS cups)))"
        """
        return self._reshaped(f"PIVOT ({', '.join(aggregates)} FOR {on} IN ({', '.join(values)}))")

    def unpivot(self, value: str, *, name: str, columns: list[str], nulls: bool = False) -> Relation:
        """Make a row of each listed column: its value, and its name. Rows whose value is NULL are kept with `nulls`.

        >>> Relation("sales").unpivot("n", name="item", columns=["tea", "cups AS cup"]).query
        'SELECT * FROM (SELECT * FROM sales UNPIVOT (n FOR item IN (tea, cups AS cup)))'
        """
        words = "UNPIVOT INCLUDE NULLS" if nulls else "UNPIVOT"
        return self._reshaped(f"{words} ({value} FOR {name} IN ({', '.join(columns)}))")

    def qualify(self, condition: str) -> Relation:
        """Keep the rows for which a condition on window functions is true. It may name columns of `select`.

        >>> latest = "row_number() OVER (PARTITION BY item ORDER BY at DESC) = 1"
        >>> print(Relation("bids").select("item", "price").qualify(latest).query)
        SELECT item, price FROM bids QUALIFY (row_number() OVER (PARTITION BY item ORDER BY at DESC) = 1)
        """
        base = self._nested() if self.is_distinct or self._is_cut or self.emission else self
        return replace(base, qualified=(*base.qualified, condition))

    def order_by(self, *columns: str) -> Relation:
        """Order rows for `limit` and `offset`. In a view, an order without them has no effect.

        >>> Relation("bids").order_by("price DESC", "id").limit(10).query
        'SELECT * FROM bids ORDER BY price DESC, id LIMIT 10'
        """
        base = self._nested() if self._is_cut or self.emission else self
        return replace(base, order=columns)

    def limit(self, most: int) -> Relation:
        """Keep the first rows by `order_by`."""
        base = self._nested() if self.most is not None or self.emission else self
        return replace(base, most=most)

    def offset(self, skipped: int) -> Relation:
        """Leave out the first rows by `order_by`. A `limit` counts the rows after these."""
        base = self._nested() if self.most is not None or self.skipped or self.emission else self
        return replace(base, skipped=skipped)

    def emit(self, policy: str) -> Relation:
        """Set when a view emits changes: `FINAL`, `EVERY INTERVAL …`, `WHEN WATERMARK PAST …`. Call it last.

        >>> Relation("orders").select("id", "ts").emit("WHEN WATERMARK PAST ts").query
        'SELECT id, ts FROM `orders` AS `orders` EMIT WHEN WATERMARK PAST ts'
        """
        return replace(self, emission=policy)

    def distinct(self) -> Relation:
        """Keep each distinct row once."""
        return replace(self._nested() if self._is_cut or self.emission else self, is_distinct=True)

    def union(self, other: Selection) -> Relation:
        """Return the rows that either relation has, each once. Columns are matched by position."""
        return self._set_operation("UNION", other)

    def union_all(self, other: Selection) -> Relation:
        """Return the rows of both relations. Columns are matched by position."""
        return self._set_operation("UNION ALL", other)

    def intersect(self, other: Selection) -> Relation:
        """Return the rows that both relations have, each once. Columns are matched by position; NULL equals NULL."""
        return self._set_operation("INTERSECT", other)

    def intersect_all(self, other: Selection) -> Relation:
        """Return the rows that both relations have, each as often as in both."""
        return self._set_operation("INTERSECT ALL", other)

    def subtract(self, other: Selection) -> Relation:
        """Return the rows that the other relation does not have, each once. Columns are matched by position.

        >>> Relation("orders").select("item").subtract(Relation("items").select("item")).query
        'SELECT * FROM (SELECT item FROM orders EXCEPT SELECT item FROM items)'
        """
        return self._set_operation("EXCEPT", other)

    def except_all(self, other: Selection) -> Relation:
        """Return the rows, each as many times as it occurs here more often than in the other relation."""
        return self._set_operation("EXCEPT ALL", other)

    def to(self, name: str, form: str | None = None, **options: object) -> None:
        """Create a view; with a format and its options, also a sink."""
        self._define(name, form, options)

    def through(self, name: str, form: str | None = None, **options: object) -> Relation:
        """Create a view, and return a relation that reads the view."""
        self._define(name, form, options)
        return Relation(name, home=self.home)

    def _joined(self, words: str, other: Selection, on: str | None, using: str | list[str] | None) -> Relation:
        if (on is None) == (using is None):
            raise ValueError("give either on= or using=")
        names = [using] if isinstance(using, str) else using
        return self._join(words, other, f" ON {on}" if names is None else f" USING ({', '.join(map(quoted, names))})")

    def _join(self, words: str, other: Selection, how: str = "") -> Relation:
        return Relation("", self._beside(words, other, how), is_join=True, home=self._home_with(other))

    def _set_operation(self, clause: str, other: Selection) -> Relation:
        return Relation("", self._combined(clause, other), home=self._home_with(other))

    def _reshaped(self, clause: str) -> Relation:
        return self._of("", f"(SELECT * FROM {self._from()} {clause})")

    def _home_with(self, other: Selection) -> Home | None:
        return self.home or other.relation().home

    def _rows(self) -> Relation:
        """Return this relation, or a query of it if it has columns already."""
        return self._nested() if self._has_columns else self

    def _nested(self) -> Relation:
        return self._of(self.name, f"({self._ended().query})")

    def _of(self, name: str, item: str) -> Relation:
        return Relation(name, item, home=self.home)


def _match(condition: str, on: str | None) -> str:
    return f" MATCH_CONDITION ({condition})" + ("" if on is None else f" ON {on}")
