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
    CREATE CHANGELOG notes (id BIGINT, text STRING);
    CREATE STREAM rates (country STRING, rate INT, since TIMESTAMP);
    CREATE STREAM clicks (item STRING, made TIMESTAMP, WATERMARK made DELAY OF INTERVAL 5 SECONDS);
    CREATE STREAM bids (item STRING, rate INT, at TIMESTAMP, WATERMARK at DELAY OF INTERVAL 5 SECONDS)
"""
VERSIONS = (
    "(SELECT country, MAX(rate) AS rate, VALIDITY_WINDOW(since) AS w FROM rates "
    "GROUP BY country, VALIDITY_WINDOW(since))"
)
VALID = "WINDOW_START(r.w) <= o.placed AND o.placed < WINDOW_END(r.w)"
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
    "intersect_all": "SELECT id, item AS what FROM orders INTERSECT ALL SELECT id, text FROM notes",
    "window_functions": "SELECT item, price, RANK() OVER (PARTITION BY country ORDER BY price DESC) AS place, "
    "LAG(price) OVER (PARTITION BY country ORDER BY item) AS before, MAX(price) OVER (PARTITION BY country) AS most "
    "FROM items",
    "first_per_group": "SELECT item, price FROM items "
    "QUALIFY RANK() OVER (PARTITION BY country ORDER BY price DESC) <= 3",
    "limit": "SELECT item, price FROM items ORDER BY price DESC LIMIT 10",
    "window_in_time": "SELECT item, rate, ROW_NUMBER() OVER (PARTITION BY TUMBLE(at, INTERVAL 1 HOUR) ORDER BY rate) "
    "AS place FROM bids",
    "scalar_subquery": "SELECT id, (SELECT price FROM items i WHERE i.item = o.item) AS price FROM orders o",
    "scalar_aggregate": "SELECT id FROM orders o WHERE cust = (SELECT max(id) FROM notes n WHERE n.text = o.item)",
    "scalar_by_domain": "SELECT id, (SELECT count(*) FROM items i WHERE i.price > o.cust) AS n FROM orders o",
    "exists_under_or": "SELECT id FROM orders o WHERE cust = 1 OR EXISTS (SELECT 1 FROM notes n WHERE n.id = o.id)",
    "in_as_a_value": "SELECT id, item IN (SELECT item FROM items) AS known FROM orders",
    "lateral": "SELECT o.id, q.n FROM orders o LEFT JOIN LATERAL (SELECT count(*) AS n FROM notes n "
    "WHERE n.id = o.id) q ON TRUE",
    "common_to_or": "SELECT o.id FROM orders o, items i WHERE (o.item = i.item AND i.price > 5 AND o.cust = 1) "
    "OR (i.item = o.item AND i.price > 9 AND o.cust = 2)",
    "filter_of_an_equal_column": "SELECT o.id, c.name, n.text FROM orders o JOIN customers c ON o.cust = c.id "
    "LEFT JOIN notes n ON n.id = c.id WHERE o.cust = 7",
    "except_in_time": "SELECT item, made FROM clicks EXCEPT SELECT item, at FROM bids",
    "join_of_a_union": "SELECT c.name, u.what FROM (SELECT id, item AS what FROM orders UNION ALL "
    "SELECT id, text FROM notes) u JOIN customers c ON u.id = c.id",
    "view_on_view": "SELECT p.name, i.price FROM placed p JOIN items i ON p.item = i.item",
    "expression_key": "SELECT o.id, n.text FROM orders o JOIN notes n ON o.cust + 1 = n.id "
    "AND COALESCE(o.item, 'none') = n.text",
    "left": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.cust = c.id",
    "left_at_arrival": "SELECT o.id, c.name FROM orders o LEFT JOIN customers FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP "
    "AS c ON o.cust = c.id AND c.country = 'UK' AND o.item <> c.name",
    "full_at_arrival": "SELECT c.item, b.rate FROM clicks c FULL JOIN bids FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP "
    "AS b ON c.item = b.item AND b.at BETWEEN c.made - INTERVAL 1 MINUTE AND c.made",
    "latest": "SELECT c.name, l.rate FROM LATEST(TABLE rates, DESCRIPTOR(country), DESCRIPTOR(since)) AS l "
    "JOIN customers c ON c.country = l.country",
    "changes": "SELECT item, _undo AS gone, count(*) AS n FROM CHANGES(TABLE items) GROUP BY item, _undo",
    "left_with_conditions_on_either_side": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c "
    "ON o.cust = c.id AND c.country = 'UK' AND o.item = 'tea' WHERE c.name IS NULL OR c.name <> 'Ada'",
    "left_with_a_condition_on_pairs": "SELECT o.id, n.text FROM orders o LEFT JOIN notes n "
    "ON o.id = n.id AND n.text <> o.item",
    "right": "SELECT o.id, c.name FROM orders o RIGHT JOIN customers c ON o.cust = c.id",
    "full": "SELECT o.item, n.text FROM orders o FULL JOIN notes n ON o.id = n.id",
    "semi": "SELECT id FROM orders LEFT SEMI JOIN notes USING (id)",
    "right_anti": "SELECT c.name FROM orders o RIGHT ANTI JOIN customers c ON o.cust = c.id",
    "anti": "SELECT id FROM orders LEFT ANTI JOIN notes USING (id)",
    "full_anti": "SELECT o.item, n.text FROM orders o FULL ANTI JOIN notes n ON o.id = n.id",
    "cross": "SELECT o.id, n.text FROM orders o CROSS JOIN notes n",
    "theta": "SELECT o.id, i.price FROM orders o JOIN items i ON o.item < i.item",
    "near_in_time": "SELECT c.item, b.rate FROM clicks c JOIN bids b "
    "ON b.at BETWEEN c.made - INTERVAL 1 MINUTE AND c.made",
    "null_safe": "SELECT o.id, i.price FROM orders o JOIN items i ON o.item <=> i.item",
    "chain_of_left_joins": "SELECT o.id, c.name, i.price, n.text FROM orders o LEFT JOIN customers c ON o.cust = c.id "
    "LEFT JOIN items i ON o.item = i.item AND c.country = i.country LEFT JOIN notes n ON o.id = n.id",
    "left_over_inner_over_full": "SELECT o.id, n.text, c.name, i.price FROM orders o FULL JOIN notes n ON o.id = n.id "
    "JOIN customers c ON o.cust = c.id LEFT JOIN items i ON c.country = i.country",
    "exists": "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.item = o.item AND price > 5)",
    "not_in": "SELECT id FROM orders WHERE item NOT IN (SELECT item FROM items WHERE price > 5)",
    "not_in_a_primary_key": "SELECT cust FROM orders WHERE cust NOT IN (SELECT id FROM customers)",
    "join_of_groups": "SELECT c.name, g.n FROM customers c "
    "LEFT JOIN (SELECT cust, count(*) AS n FROM orders GROUP BY cust) g ON g.cust = c.id",
    "windowed_join": "SELECT o.id, c.made FROM orders o JOIN clicks c ON o.item = c.item "
    "AND TUMBLE(o.placed, INTERVAL 5 MINUTES) = TUMBLE(c.made, INTERVAL 5 MINUTES)",
    "hop": "SELECT HOP(made, INTERVAL 5 MINUTES, INTERVAL 10 MINUTES) AS w, count(*) AS n FROM clicks GROUP BY w",
    "sessions": "SELECT item, SESSION(made, INTERVAL 5 MINUTES) AS w, count(*) AS n, max(item) AS last FROM clicks "
    "GROUP BY item, SESSION(made, INTERVAL 5 MINUTES) EMIT FINAL",
    "sessions_of_a_changelog": "SELECT country, session_window(CAST(price AS BIGINT), 5) AS w, min(item) AS first "
    "FROM items GROUP BY country, session_window(CAST(price AS BIGINT), 5)",
    "rollup": "SELECT item, TUMBLE(made, INTERVAL 5 MINUTES) AS w, count(*) AS n, GROUPING(item) AS g FROM clicks "
    "GROUP BY TUMBLE(made, INTERVAL 5 MINUTES), ROLLUP(item)",
    "current_rows": "SELECT item, count(*) AS n FROM clicks WHERE made > current_timestamp() - INTERVAL 1 HOUR "
    "GROUP BY item",
    "explode": "SELECT id, part FROM notes LATERAL VIEW explode(array(text, 'none')) AS part",
    "values": "SELECT n.text, v.size FROM notes n JOIN VALUES (1, 'small'), (2, 'large') AS v(id, size) ON n.id = v.id",
    "validity_join": f"SELECT o.id, r.rate FROM orders o JOIN customers c ON o.cust = c.id JOIN {VERSIONS} r "
    f"ON c.country = r.country AND {VALID}",
    "validity_left_join": f"SELECT o.id, r.rate, r.w FROM orders o LEFT JOIN {VERSIONS} r "
    f"ON o.item = r.country AND {VALID}",
    "as_of": "SELECT o.id, r.rate FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.placed >= r.since) "
    "ON o.item = r.country",
    "as_of_strictly_before": "SELECT o.id, r.rate FROM orders o ASOF LEFT JOIN rates r "
    "MATCH_CONDITION (o.placed > r.since) ON o.item = r.country",
    "emit_every": "SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id EMIT EVERY INTERVAL 10 SECONDS",
    "emit_final": "SELECT item, TUMBLE(made, INTERVAL 1 MINUTE) AS w, count(*) AS n FROM clicks "
    "GROUP BY item, TUMBLE(made, INTERVAL 1 MINUTE) EMIT FINAL",
    "emit_past_a_column": "SELECT c.made, i.price FROM clicks c JOIN items i ON c.item = i.item "
    "EMIT WHEN WATERMARK PAST c.made",
    "emit_past_a_bounded_join": "SELECT c.made, r.rate FROM clicks c JOIN bids r ON c.item = r.item "
    "AND r.at BETWEEN c.made AND c.made + INTERVAL 1 HOUR EMIT WHEN WATERMARK PAST c.made",
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


def test_explain_of_a_query_shows_what_it_would_add() -> None:
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


def test_an_arrangement_is_shared_with_views_not_with_what_they_are_made_of() -> None:
    driver = Driver()
    driver.sql(SOURCES)
    driver.sql(f"CREATE VIEW whole AS {QUERIES['full']}")
    text = driver.sql(f"EXPLAIN {QUERIES['semi']}")
    assert "notes[id] (exists, shared with whole)" in text
    assert "orders[id] (exists, shared with whole)" in text
