"""Rows of TPC-DS's 24 tables for one query, made at random: many of their values are constants of that query.

The official generator gives a query rows only at a large scale. Here a few hundred rows answer most queries, and
changes reach them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

Row = dict[str, Any]
Key = tuple[Any, ...]
Tables = Mapping[str, Sequence[tuple[str, str]]]
"""Names and types of the columns of each table."""

_SALES = {"store_returns": "store_sales", "catalog_returns": "catalog_sales", "web_returns": "web_sales"}
_TARGETS = {
    "date_sk": "date_dim", "time_sk": "time_dim", "item_sk": "item", "customer_sk": "customer",
    "cdemo_sk": "customer_demographics", "hdemo_sk": "household_demographics", "addr_sk": "customer_address",
    "store_sk": "store", "promo_sk": "promotion", "call_center_sk": "call_center", "page_sk": "catalog_page",
    "ship_mode_sk": "ship_mode", "warehouse_sk": "warehouse", "site_sk": "web_site", "reason_sk": "reason",
    "income_band_sk": "income_band",
}  # fmt: skip
_SIZES = {"date_dim": 24, "item": 14, "customer": 16, "inventory": 150}
_SIZES |= dict.fromkeys((*_SALES, *_SALES.values()), 160)
_FIRST = date(1900, 1, 1)


def key_of(table: str, columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the primary key of a table."""
    names = [name for name, _ in columns]
    if table == "inventory":
        return names[:3]
    if table in _SALES or table in _SALES.values():
        return [name for name in names if name.endswith(("_item_sk", "_ticket_number", "_order_number"))]
    return names[:1]


class Database:
    """The tables that a query reads, as they are, and random changes of them."""

    def __init__(self, seed: int, tables: Tables, query: str) -> None:
        self.random = random.Random(seed)
        tree = sqlglot.parse_one(query, read="duckdb")
        self.constants = _constants(tree)
        read = {table.name for table in tree.find_all(exp.Table)} & tables.keys()
        self.columns = {name: tables[name] for name in sorted(read, key=lambda name: (name in _SALES, name))}
        self.tables: dict[str, dict[Key, Row]] = {name: {} for name in self.columns}

    def load(self) -> Iterator[tuple[str, Row]]:
        """Fill all tables; the rows that this takes."""
        for table in self.columns:
            for number in range(_SIZES.get(table, 6)):
                row = self._row(table, number)
                self.tables[table][self._key(table, row)] = row
            yield from ((table, row) for row in self.tables[table].values())

    def change(self, count: int) -> Iterator[tuple[str, Row, bool]]:
        """Random changes: table, row, and whether the row is put, in place of the one of its key, or deleted."""
        facts = [table for table in self.columns if _SIZES.get(table, 0) >= 150]
        for _ in range(count):
            table = self.random.choice([*facts, *facts, *self.columns])
            rows = self.tables[table]
            if rows and self.random.random() < 0.3:
                yield table, rows.pop(self.random.choice(list(rows))), False
                continue
            row = self._row(table, self.random.randrange(_SIZES.get(table, 6)))
            rows[self._key(table, row)] = row
            yield table, row, True

    def _key(self, table: str, row: Row) -> Key:
        return tuple(row[name] for name in key_of(table, self.columns[table]))

    def _row(self, table: str, number: int) -> Row:
        if table == "date_dim":
            return self._date(number)
        keys = key_of(table, self.columns[table])
        row = {name: self._value(name, kind, number, is_key=name in keys) for name, kind in self.columns[table]}
        sales = list(self.tables.get(_SALES.get(table, ""), {}).values())
        if sales and self.random.random() < 0.9:  # a return has the item, the order and mostly the customer of a sale
            sale = {name.split("_", 1)[1]: value for name, value in self.random.choice(sales).items()}
            for name in row:
                end = name.split("_", 1)[1].replace("returning_", "bill_").replace("refunded_", "bill_")
                if end in sale and (name in keys or self.random.random() < 0.8):
                    row[name] = sale[end]
        return row

    def _value(self, name: str, kind: str, number: int, *, is_key: bool) -> Any:
        choose = self.random.random
        target = next((table for end, table in _TARGETS.items() if name.endswith(end)), None)
        if is_key and not name.endswith(("_item_sk", "_number", "_date_sk", "_warehouse_sk")):
            return number
        if kind != "VARCHAR" and name.endswith(("_sk", "_number")):
            size = _SIZES.get(target or "", 6) if target else 40
            return None if not is_key and choose() < 0.04 else self.random.randrange(size)
        known = self.constants.get(name)
        if not is_key and not name.endswith("_id") and choose() < 0.05:
            return None
        if known and choose() < 0.85:
            return _as(self.random.choice(known), kind, self.random.randrange(4) if kind != "VARCHAR" else 0)
        if kind == "DATE":
            return date(2000, 1, 1) + timedelta(days=self.random.randrange(900))
        if kind.startswith("DECIMAL"):
            most = 900 if kind.startswith("DECIMAL(5") else 20000
            return Decimal(self.random.randint(-2000 if "profit" in name else 1, most)).scaleb(-2)
        if kind == "VARCHAR":
            return f"id {number // 2}" if name.endswith("_id") else self.random.choice(("some", "other", "third"))
        return self.random.randint(0, 30)

    def _date(self, number: int) -> Row:
        """A day, most often one that the query asks for; its other columns follow from it."""
        constants, choose = self.constants, self.random.choice
        days = [day for text in constants.get("d_date", []) if (day := _day(text)) is not None]
        months = self._numbers("d_month_seq", 1100, 1300)
        if days and self.random.random() < 0.85:
            day = choose(days) + timedelta(days=self.random.randrange(-12, 40))
        elif months and self.random.random() < 0.85:
            month = choose(months) + self.random.randrange(12)
            day = date(1900 + month // 12, month % 12 + 1, self.random.randint(1, 28))
        else:
            years = self._numbers("d_year", 1990, 2010) or [2000]
            quarter = [quarter * 3 for quarter in self._numbers("d_qoy", 1, 4)]
            month = choose([*self._numbers("d_moy", 1, 12), *quarter] or range(1, 13))
            dom = self._numbers("d_dom", 1, 28) or range(1, 29)
            day = date(choose(years) + choose((0, 0, 0, 1, -1)), month, choose(dom))
        values = {
            "d_date_sk": number,
            "d_date_id": f"date {number}",
            "d_date": day,
            "d_month_seq": (day.year - 1900) * 12 + day.month - 1,
            "d_week_seq": (day - _FIRST).days // 7,
            "d_quarter_seq": (day.year - 1900) * 4 + (day.month - 1) // 3,
            "d_year": day.year,
            "d_dow": day.isoweekday() % 7,
            "d_moy": day.month,
            "d_dom": day.day,
            "d_qoy": (day.month - 1) // 3 + 1,
            "d_day_name": day.strftime("%A"),
            "d_quarter_name": f"{day.year}Q{(day.month - 1) // 3 + 1}",
        }
        return {name: values.get(name) for name, _ in self.columns["date_dim"]}

    def _numbers(self, column: str, least: int, most: int) -> list[int]:
        numbers = (int(text) for text in self.constants.get(column, []) if text.isdecimal())
        return [number for number in numbers if least <= number <= most]


def _constants(tree: exp.Expr) -> dict[str, list[str]]:
    """Return the constants with which a query compares each column."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.Between, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like):
        literals = [literal.name for literal in node.find_all(exp.Literal) if _compares(node, literal)]
        for column in node.find_all(exp.Column):
            if column.find_ancestor(exp.Query) is node.find_ancestor(exp.Query):
                found[column.name] += literals
    return found


def _compares(node: exp.Expr, literal: exp.Literal) -> bool:
    """Whether a constant is what a column is compared with, and not part of an interval or a call."""
    if literal.find_ancestor(exp.Interval, exp.Substring, exp.Round) is not None:
        return False
    return literal.find_ancestor(exp.Query) is node.find_ancestor(exp.Query)


def _as(text: str, kind: str, more: int) -> Any:
    """Return a constant as a value of a column, numbers a little larger at times."""
    if kind == "VARCHAR":
        return text.replace("%", "")
    if kind == "DATE":
        return _day(text)
    try:
        number = Decimal(text) + more
    except ArithmeticError:
        return None
    return number.quantize(Decimal("0.01")) if kind.startswith("DECIMAL") else int(number)


def _day(text: str) -> date | None:
    try:
        year, month, day = (int(part) for part in text.split("-"))
        return date(year, month, day)
    except ValueError:
        return None
