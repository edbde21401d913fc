"""EXPLAIN as text beside this file; `REWRITE_PLANS=1 pytest tests/golden/plans` writes it anew. Read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rejoinder.testing import Driver

FOLDER = Path(__file__).parent
SOURCES = """
    CREATE STREAM orders (id BIGINT, cust INT, item STRING, placed TIMESTAMP);
    CREATE TABLE customers (id BIGINT, name STRING, country STRING, PRIMARY KEY (id));
    CREATE CHANGELOG items (item STRING, price DECIMAL(10,2), country STRING);
    CREATE CHANGELOG notes (id BIGINT, text STRING)
"""
QUERIES = {
    "two_way": "SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id",
    "chain": "SELECT o.id, c.name, i.price FROM items i JOIN orders o ON i.item = o.item "
    "JOIN customers c ON o.cust = c.id WHERE i.price > 1 AND c.country = i.country",
    "star_on_one_key": "SELECT o.item, c.name, n.text FROM orders o JOIN customers c ON o.id = c.id "
    "JOIN notes n ON o.id = n.id",
    "self_join": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.cust = b.cust AND a.id < b.id",
    "using": "SELECT id, name, text FROM customers JOIN notes USING (id)",
    "distinct": "SELECT DISTINCT o.item, c.country FROM orders o JOIN customers c ON o.cust = c.id",
    "group_by": "SELECT c.country, count(*) AS n, min(o.placed) AS first FROM orders o "
    "JOIN customers c ON o.cust = c.id GROUP BY c.country HAVING count(*) > 1",
    "group_by_append_only": "SELECT item, max(placed) AS latest FROM orders GROUP BY item",
    "distinct_values": "SELECT count(DISTINCT item) AS items, count(*) AS n FROM orders",
    "union_all": "SELECT id, item AS what FROM orders UNION ALL SELECT id, text FROM notes",
    "join_of_a_union": "SELECT c.name, u.what FROM (SELECT id, item AS what FROM orders UNION ALL "
    "SELECT id, text FROM notes) u JOIN customers c ON u.id = c.id",
    "view_on_view": "SELECT p.name, i.price FROM placed p JOIN items i ON p.item = i.item",
    "expression_key": "SELECT o.id, n.text FROM orders o JOIN notes n ON o.cust + 1 = n.id "
    "AND COALESCE(o.item, 'none') = n.text",
    "shared_with_another_view": "SELECT c.country, o.placed FROM orders o JOIN customers c ON o.cust = c.id",
}
BEFORE = {
    "view_on_view": "CREATE VIEW placed AS SELECT c.name, o.item FROM orders o JOIN customers c ON o.cust = c.id",
    "shared_with_another_view": "CREATE VIEW first AS SELECT o.id FROM orders o JOIN customers c ON o.cust = c.id",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_is_the_one_on_record(name: str) -> None:
    driver = Driver()
    driver.sql(SOURCES)
    if name in BEFORE:
        driver.sql(BEFORE[name])
    driver.sql(f"CREATE VIEW v AS {QUERIES[name]}")
    text = f"{QUERIES[name]}\n\n{driver.sql('EXPLAIN v')}\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get("REWRITE_PLANS"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), "REWRITE_PLANS=1 pytest tests/golden/plans rewrites; read the diff"


def test_explain_of_a_query_tells_what_it_would_add() -> None:
    driver = Driver()
    driver.sql(SOURCES)
    driver.sql(BEFORE["shared_with_another_view"])
    text = driver.sql(f"EXPLAIN {QUERIES['star_on_one_key']}")
    assert "orders[cust]" not in text
    assert "customers[id] (exists, shared with first, primary key)" in text
    assert "orders[id] (new)" in text and "notes[id] (new)" in text
    assert "notes[id]" not in {row["name"] for row in driver.arrangements()}


def test_no_file_is_left_over() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(QUERIES)
