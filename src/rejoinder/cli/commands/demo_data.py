"""A small shop for the demonstration: customers, orders and order lines, as files that appear one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SEED = 7
CUSTOMERS, ORDERS = 500, 5_000
FIRST = ("Ada", "Barbara", "Claude", "Donald", "Edsger", "Frances", "Grace", "Hedy", "Ivan", "Jean", "Karen", "Leslie")
LAST = ("Allen", "Bartik", "Codd", "Dahl", "Engelbart", "Floyd", "Gray", "Hopper", "Iverson", "Jones", "Kay", "Lamport")
CITIES = ("Bergen", "Cork", "Ghent", "Leipzig", "Lyon", "Malmö", "Porto", "Turin", "Utrecht", "Vilnius")
PRODUCTS = {"tea": "4.20", "coffee": "7.90", "cup": "12.50", "kettle": "39.00", "honey": "6.40", "lemon": "0.80"}

ORDER_COLUMNS = pa.schema([("id", pa.int64()), ("customer_id", pa.int64()), ("op", pa.string())])
LINE_COLUMNS = pa.schema(
    [("order_id", pa.int64()), ("product", pa.string()), ("quantity", pa.int32()), ("price", pa.decimal128(8, 2))]
)

SQL = """\
-- Three sources: customers and orders are tables, a new row replaces the one with its key; lines only come.
CREATE TABLE customers (id BIGINT, name STRING, city STRING, PRIMARY KEY (id))
  USING json OPTIONS (path '{data}/customers');

CREATE TABLE orders (id BIGINT, customer_id BIGINT, op STRING, PRIMARY KEY (id))
  USING parquet OPTIONS (path '{data}/orders', op 'op');

CREATE STREAM lines (order_id BIGINT, product STRING, quantity INT, price DECIMAL(8, 2))
  USING parquet OPTIONS (path '{data}/lines');

-- A three-way join, kept up to date.
CREATE VIEW sales AS
  SELECT o.id AS order_id, c.name AS customer, c.city, l.product, l.quantity * l.price AS amount
  FROM orders o
  JOIN customers c ON o.customer_id = c.id
  JOIN lines l ON l.order_id = o.id;
"""


class Shop:
    """Writes the files of a shop into folders below `data`. Every file appears whole; the same every time."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.random = Random(SEED)
        self.orders = 0
        self._files = 0
        for source in ("customers", "orders", "lines"):
            (data / source).mkdir(parents=True)

    def open(self) -> int:
        """Write the first customers, orders and lines; give the number of rows."""
        customers = [self.customer(number) for number in range(1, CUSTOMERS + 1)]
        return self.write_customers(customers) + self.trade(ORDERS)

    def customer(self, number: int, *, city: str | None = None) -> dict[str, Any]:
        """A customer, in a city of chance unless given."""
        return {"id": number, "name": name_of(number), "city": city or self.random.choice(CITIES)}

    def trade(self, orders: int) -> int:
        """Write some orders of chance with one to three lines each; give the number of rows."""
        first = self.orders + 1
        self.orders += orders
        numbers = range(first, self.orders + 1)
        lines = [line for number in numbers for line in self.lines(number, self.random.randint(1, 3))]
        customers = self.random.choices(range(2, CUSTOMERS + 1), k=orders)
        rows = [{"id": i, "customer_id": c, "op": "i"} for i, c in zip(numbers, customers, strict=True)]
        return self.write_lines(lines) + self.write_orders(rows)

    def lines(self, order: int, count: int) -> list[dict[str, Any]]:
        """Lines of an order, each of another product."""
        chosen = self.random.sample(sorted(PRODUCTS), count)
        return [
            {"order_id": order, "product": p, "quantity": self.random.randint(1, 5), "price": self.price(p)}
            for p in chosen
        ]

    def price(self, product: str) -> Decimal:
        """A price of the day: up to a fifth more or less."""
        return (Decimal(PRODUCTS[product]) * self.random.randint(8_000, 12_000) / 10_000).quantize(Decimal("0.01"))

    def write_customers(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Write a JSON file of customers; give the number of rows."""
        self._place("customers", "json", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        return len(rows)

    def write_orders(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Write a Parquet file of orders (op `d` takes one out); give the number of rows."""
        self._place("orders", "parquet", _parquet(rows, ORDER_COLUMNS))
        return len(rows)

    def write_lines(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Write a Parquet file of lines; give the number of rows."""
        self._place("lines", "parquet", _parquet(rows, LINE_COLUMNS))
        return len(rows)

    def _place(self, source: str, kind: str, content: bytes) -> None:
        self._files += 1
        path = self.data / source / f"{self._files:04d}.{kind}"
        part = path.with_name(f".{path.name}")
        part.write_bytes(content)
        part.rename(path)


def name_of(customer: int) -> str:
    """The name of a customer."""
    return f"{FIRST[(customer - 1) % 12]} {LAST[(customer - 1) * 7 // 12 % 12]}"


def _parquet(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), sink)
    return bytes(sink.getvalue())
