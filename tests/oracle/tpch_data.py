"""Rows of TPC-H's eight tables, made at random: few values, so that the constants of the queries are among them.

The official generator gives each query a handful of rows only at a large scale. Here a tiny database answers all 22.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

Row = dict[str, Any]
Key = tuple[int, ...]

SCHEMA = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING, PRIMARY KEY (r_regionkey)",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING, PRIMARY KEY (n_nationkey)",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
    "p_container STRING, p_retailprice DECIMAL(12,2), p_comment STRING, PRIMARY KEY (p_partkey)",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
    "s_acctbal DECIMAL(12,2), s_comment STRING, PRIMARY KEY (s_suppkey)",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(12,2), "
    "ps_comment STRING, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
    "c_acctbal DECIMAL(12,2), c_mktsegment STRING, c_comment STRING, PRIMARY KEY (c_custkey)",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(12,2), "
    "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING, "
    "PRIMARY KEY (o_orderkey)",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(12,2), "
    "l_extendedprice DECIMAL(12,2), l_discount DECIMAL(12,2), l_tax DECIMAL(12,2), l_returnflag STRING, "
    "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, "
    "l_shipmode STRING, l_comment STRING, PRIMARY KEY (l_orderkey, l_linenumber)",
}
_KEYS = {table: columns.rpartition("PRIMARY KEY (")[2].rstrip(")").split(", ") for table, columns in SCHEMA.items()}
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = {"FRANCE": 3, "GERMANY": 3, "CANADA": 1, "BRAZIL": 1, "SAUDI ARABIA": 4, "CHINA": 2}
_FIRST = date(1993, 1, 1)


class Database:
    """The tables as they are, and random changes of them. `scale` is about that of TPC-H."""

    def __init__(self, seed: int, scale: float) -> None:
        self.random = random.Random(seed)
        self.tables: dict[str, dict[Key, Row]] = {table: {} for table in SCHEMA}
        self.sizes = {
            "supplier": max(12, int(10_000 * scale)),
            "part": max(40, int(200_000 * scale)),
            "customer": max(40, int(150_000 * scale)),
            "orders": max(150, int(1_500_000 * scale)),
        }

    def rows(self, table: str) -> list[Row]:
        """The rows of a table."""
        return list(self.tables[table].values())

    def load(self) -> Iterator[tuple[str, Row]]:
        """Fill all tables; the rows that this takes."""
        for table, rows in (("region", self._regions()), ("nation", self._nations())):
            for row in rows:
                yield self._put(table, row)
        for table in ("supplier", "part", "customer", "orders"):
            for key in range(self.sizes[table]):
                yield from self._new(table, key)

    def change(self, count: int) -> Iterator[tuple[str, Row | None, Row | None]]:
        """Random changes: table, the row that is deleted, and the row that is put in its place or added."""
        for _ in range(count):
            table = self.random.choice(("lineitem", "lineitem", "lineitem", "orders", "partsupp", *SCHEMA))
            held = self.tables[table]
            if table not in ("region", "nation") and held and self.random.random() < 0.35:
                key = self.random.choice(list(held))
                yield table, held.pop(key), None
                continue
            if table in ("region", "nation", "partsupp", "lineitem") and held:
                key = self.random.choice(list(held))
                old = held[key]
                new = self._updated(table, old)
                held[key] = new
                yield table, old, new
                continue
            key_value = self.random.randrange(self.sizes.get(table, 1) + 5)
            for name, row in list(self._new(table, key_value)):
                yield name, None, row

    def _put(self, table: str, row: Row) -> tuple[str, Row]:
        self.tables[table][tuple(row[name] for name in _KEYS[table])] = row
        return table, row

    def _updated(self, table: str, row: Row) -> Row:
        match table:
            case "region":
                return {**row, "r_name": self.random.choice(_REGIONS)}
            case "nation":
                return {**row, "n_regionkey": self.random.randrange(5)}
            case "partsupp":
                return self._partsupp(row["ps_partkey"], row["ps_suppkey"])
            case _:
                order = self.tables["orders"].get((row["l_orderkey"],))
                placed = _FIRST if order is None else order["o_orderdate"]
                return self._lineitem(row["l_orderkey"], row["l_linenumber"], placed)

    def _new(self, table: str, key: int) -> Iterator[tuple[str, Row]]:
        match table:
            case "supplier":
                yield self._put(table, self._supplier(key))
            case "part":
                yield self._put(table, self._part(key))
                for place in range(3):
                    yield self._put("partsupp", self._partsupp(key, self._supplier_of(key, place)))
            case "customer":
                yield self._put(table, self._customer(key))
            case "orders":
                order = self._order(key)
                yield self._put(table, order)
                for line in range(self.random.randint(1, 5)):
                    yield self._put("lineitem", self._lineitem(key, line, order["o_orderdate"]))
            case _:
                return

    def _supplier_of(self, part: int, place: int) -> int:
        return (part * 7 + place) % self.sizes["supplier"]

    def _money(self, least: int, most: int) -> Decimal:
        return Decimal(self.random.randint(least * 100, most * 100)).scaleb(-2)

    def _day(self, first: date, days: int) -> date:
        return first + timedelta(days=self.random.randrange(days))

    @staticmethod
    def _regions() -> Iterator[Row]:
        for key, name in enumerate(_REGIONS):
            yield {"r_regionkey": key, "r_name": name, "r_comment": ""}

    @staticmethod
    def _nations() -> Iterator[Row]:
        for key, (name, region) in enumerate(_NATIONS.items()):
            yield {"n_nationkey": key, "n_name": name, "n_regionkey": region, "n_comment": ""}

    def _supplier(self, key: int) -> Row:
        comment = self.random.choice(("", "quick", "some Customer at all Complaints"))
        return {
            "s_suppkey": key,
            "s_name": f"Supplier#{key}",
            "s_address": f"street {key}",
            "s_nationkey": self.random.randrange(len(_NATIONS)),
            "s_phone": f"{self.random.randint(10, 34)}-1",
            "s_acctbal": self._money(-999, 9999),
            "s_comment": comment,
        }

    def _part(self, key: int) -> Row:
        choose = self.random.choice
        return {
            "p_partkey": key,
            "p_name": f"{choose(('forest', 'green', 'forest green'))} {key}",
            "p_mfgr": "Manufacturer#1",
            "p_brand": choose(("Brand#12", "Brand#23", "Brand#34", "Brand#45")),
            "p_type": choose(("ECONOMY ANODIZED STEEL", "PROMO BRASS", "LARGE BRASS", "MEDIUM POLISHED TIN")),
            "p_size": choose((1, 3, 5, 9, 14, 15, 49)),
            "p_container": choose(("SM CASE", "MED BOX", "MED BAG", "LG BOX")),
            "p_retailprice": self._money(900, 2000),
            "p_comment": "",
        }

    def _partsupp(self, part: int, supplier: int) -> Row:
        quantity, cost = self.random.randint(1, 200), self._money(1, 5)
        return {
            "ps_partkey": part,
            "ps_suppkey": supplier,
            "ps_availqty": quantity,
            "ps_supplycost": cost,
            "ps_comment": "",
        }

    def _customer(self, key: int) -> Row:
        return {
            "c_custkey": key,
            "c_name": f"Customer#{key}",
            "c_address": f"road {key}",
            "c_nationkey": self.random.randrange(len(_NATIONS)),
            "c_phone": f"{self.random.choice((13, 31, 23, 99))}-2",
            "c_acctbal": self._money(-999, 9999),
            "c_mktsegment": self.random.choice(("BUILDING", "MACHINERY")),
            "c_comment": "",
        }

    def _order(self, key: int) -> Row:
        choose = self.random.choice
        return {
            "o_orderkey": key,
            "o_custkey": self.random.randrange(self.sizes["customer"] * 2 // 3),
            "o_orderstatus": choose("FO"),
            "o_totalprice": self._money(100, 9999),
            "o_orderdate": self._day(_FIRST, 1400),
            "o_orderpriority": choose(("1-URGENT", "2-HIGH", "3-MEDIUM")),
            "o_clerk": "",
            "o_shippriority": 0,
            "o_comment": choose(("", "special packages requests")),
        }

    def _lineitem(self, order: int, line: int, placed: date) -> Row:
        choose = self.random.choice
        shipped, part = self._day(placed, 120), self.random.randrange(self.sizes["part"])
        return {
            "l_orderkey": order,
            "l_partkey": part,
            "l_suppkey": self._supplier_of(part, self.random.randrange(3)),
            "l_linenumber": line,
            "l_quantity": Decimal(choose((1, 3, 5, 12, 18, 25, 50, 200))),
            "l_extendedprice": self._money(900, 9999),
            "l_discount": Decimal(self.random.randrange(11)).scaleb(-2),
            "l_tax": Decimal(self.random.randrange(9)).scaleb(-2),
            "l_returnflag": choose("RAN"),
            "l_linestatus": choose("OF"),
            "l_shipdate": shipped,
            "l_commitdate": self._day(placed, 120),
            "l_receiptdate": self._day(shipped, 30),
            "l_shipinstruct": choose(("DELIVER IN PERSON", "NONE")),
            "l_shipmode": choose(("AIR", "AIR REG", "MAIL", "SHIP")),
            "l_comment": "",
        }
