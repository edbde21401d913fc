"""Random epochs: a view equals batch Spark's answer on the same rows, at any parallelism, however often restarted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from tests.deep import IS_DEEP, seeds
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag, summed, view

Row = dict[str, Any]

PARALLELISM = (1, 2, 7)
VIEWS = {
    "three": """SELECT o.id, c.name, i.sku, i.n * i.price AS total FROM orders o JOIN items i ON o.id = i.order_id
                JOIN customers c ON o.customer = c.id WHERE i.n > 1""",
    "pairs": "SELECT a.id, b.id AS other FROM orders a, orders b WHERE a.customer = b.customer AND a.id < b.id",
    "places": """SELECT DISTINCT c.region, i.sku FROM three t JOIN items i USING (sku)
                 JOIN customers c ON c.name = t.name""",
    "sold": """SELECT c.region, sum(i.n) AS n, max(i.price) AS top, count(DISTINCT i.sku) AS skus, avg(i.n) AS mean
               FROM orders o JOIN items i ON o.id = i.order_id JOIN customers c ON o.customer = c.id
               GROUP BY c.region HAVING count(*) > 1""",
    "totals": "SELECT count(*) AS n, count(DISTINCT customer) AS customers, min(id) AS lowest FROM orders",
    "all_names": "SELECT name AS word FROM customers UNION ALL SELECT sku FROM items UNION ALL SELECT name FROM three",
}


@dataclass
class Shop:
    """Orders that only come, items that come and go, customers that change; with NULLs, duplicates and skew."""

    folder: Path
    random: np.random.Generator
    orders: list[Row] = field(default_factory=list)
    items: list[Row] = field(default_factory=list)
    customers: dict[int, Row] = field(default_factory=dict)
    epochs: int = 0

    def create(self, flow: rj.Flow) -> None:
        for name in ("orders", "items", "customers"):
            (self.folder / name).mkdir()
        flow.sql(f"""
            CREATE STREAM orders (id BIGINT, customer BIGINT) USING parquet OPTIONS (path '{self.folder}/orders');
            CREATE CHANGELOG items (order_id BIGINT, sku STRING, n INT, price DOUBLE, diff BIGINT)
                USING parquet OPTIONS (path '{self.folder}/items', diff 'diff');
            CREATE TABLE customers (id BIGINT, name STRING, region STRING, op STRING, PRIMARY KEY (id))
                USING parquet OPTIONS (path '{self.folder}/customers', op 'op')""")

    def pick(self, high: int) -> int | None:
        """A number with a few favourites, at times NULL."""
        return None if self.random.random() < 0.05 else int(high * self.random.random() ** 2)

    def epoch(self) -> None:
        """Write the files of one more epoch, and record the relations after it."""
        self.epochs += 1
        orders = [{"id": self.pick(60), "customer": self.pick(12)} for _ in range(self.random.integers(0, 30))]
        self.orders += orders
        changes = []
        for _ in range(self.random.integers(0, 40)):
            if self.items and self.random.random() < 0.4:
                gone = self.items.pop(self.random.integers(len(self.items)))
                changes.append({**gone, "diff": -1})
            else:
                sku = self.pick(9)
                new: Row = {"order_id": self.pick(60), "sku": None if sku is None else f"s{sku}", "n": self.pick(5)}
                new["price"] = float(self.random.choice([0.5, 1.25, 3.0]))
                self.items.append(new)
                changes.append({**new, "diff": 1})
        people = []
        for _ in range(self.random.integers(0, 8)):
            known = int(self.random.integers(12))
            if self.random.random() < 0.3:
                self.customers.pop(known, None)
                people.append({"id": known, "name": None, "region": None, "op": "d"})
            else:
                name, region = f"n{self.random.integers(4)}", f"r{self.random.integers(3)}"
                self.customers[known] = {"id": known, "name": name, "region": region}
                people.append({**self.customers[known], "op": "u"})
        for name, rows in (("orders", orders), ("items", changes), ("customers", people)):
            if rows:
                write_rows(self.folder / name / f"{self.epochs}.parquet", rows)

    def tell(self, spark: SparkSession) -> None:
        """Make the relations known to batch Spark."""
        schemas = {
            "orders": "id BIGINT, customer BIGINT",
            "items": "order_id BIGINT, sku STRING, n INT, price DOUBLE",
            "customers": "id BIGINT, name STRING, region STRING",
        }
        for name, rows in (("orders", self.orders), ("items", self.items), ("customers", self.customers.values())):
            columns = [part.split()[0] for part in schemas[name].split(", ")]
            data = [tuple(row[column] for column in columns) for row in rows]
            spark.createDataFrame(data, schemas[name]).createOrReplaceTempView(name)
        for name, query in VIEWS.items():
            spark.sql(query).createOrReplaceTempView(name)


@pytest.mark.parametrize("seed", seeds(1, times=4))
def test_views_equal_batch_spark_after_every_epoch(
    spark: SparkSession, open_flow: OpenFlow, tmp_path: Path, seed: int
) -> None:
    shop = Shop(tmp_path / "in", np.random.default_rng(seed))
    shop.folder.mkdir()
    flow = open_flow(parallelism=2)
    shop.create(flow)
    names = list(VIEWS)
    for name in names[:2]:
        flow.sql(f"CREATE VIEW {name} AS {VIEWS[name]}")
    for turn in range(6 if IS_DEEP else 4):
        shop.epoch()
        flow.run()
        if turn % 2:
            flow = open_flow(parallelism=PARALLELISM[(turn // 2 + seed) % 3])
        if turn == 2:  # filled from what is there
            for name in names[2:]:
                flow.sql(f"CREATE VIEW {name} AS {VIEWS[name]}")
        shop.tell(spark)
        for name in names[: 2 if turn < 2 else None]:
            assert view(flow, name) == bag(spark.table(name)), f"{name} after epoch {turn}, seed {seed}"
    for name in names:
        assert bag(flow.table(name)) == bag(spark.table(name))
        assert summed(flow.sql(f"SELECT STREAM * FROM {name}").collect()) == bag(spark.table(name))


def test_several_epochs_in_one_run(spark: SparkSession, open_flow: OpenFlow, tmp_path: Path) -> None:
    """Input that is cut into epochs by Spark gives the same as input that comes epoch by epoch."""
    shop = Shop(tmp_path / "in", np.random.default_rng(3))
    shop.folder.mkdir()
    flow = open_flow(parallelism=3)
    shop.create(flow)
    for name, query in VIEWS.items():
        flow.sql(f"CREATE VIEW {name} AS {query}")
    for _ in range(5):
        shop.epoch()
    assert len(flow.run()) == 1
    shop.tell(spark)
    for name in VIEWS:
        assert view(flow, name) == bag(spark.table(name))
