"""WHY: the causes of a row are input rows from which the row follows, and without which it does not."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import InvalidSql, NotCommitted, RejoinderError, UnknownName, Unsupported
from rejoinder.testing import Driver
from tests.kit import flow

SOURCES = """
    CREATE CHANGELOG o (id INT, c INT, amount INT, at TIMESTAMP);
    CREATE CHANGELOG c (id INT, name STRING);
"""
ORDERS = [
    {"id": i, "c": None if i == 7 else i % 4, "amount": i * i % 11, "at": datetime(2026, 1, 1, 12, 7 * i)}
    for i in range(8)
]
CUSTOMERS = [{"id": i, "name": name} for i, name in enumerate(("ann", "bob", "bob"))]

QUERIES = {
    "filter": "SELECT id, amount + 1 AS more FROM o WHERE amount > 2",
    "inner": "SELECT o.id, UPPER(name) AS n FROM o JOIN c ON o.c = c.id WHERE amount > 1",
    "inequality": "SELECT o.id, name FROM o JOIN c ON o.amount < c.id + 2",
    "left": "SELECT o.id, name FROM o LEFT JOIN c ON o.c = c.id AND amount > 2",
    "full": "SELECT o.id, name FROM o FULL JOIN c ON o.c = c.id",
    "semi": "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.id = o.c)",
    "anti": "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.id = o.c)",
    "not in": "SELECT id FROM o WHERE amount NOT IN (SELECT id FROM c)",
    "self": "SELECT a.id, b.id AS other FROM o a JOIN o b ON a.c = b.c AND a.id < b.id",
    "group": "SELECT name, SUM(amount) s, COUNT(*) n FROM o LEFT JOIN c ON o.c = c.id GROUP BY 1 HAVING n > 1",
    "all rows": "SELECT COUNT(*) AS n, MAX(amount) AS m FROM o",
    "distinct": "SELECT DISTINCT name FROM c",
    "union": "SELECT id FROM o UNION SELECT id + 5 FROM c",
    "union all": "SELECT id FROM o WHERE id > 5 UNION ALL SELECT id FROM c",
    "except": "SELECT c AS id FROM o EXCEPT SELECT id FROM c",
    "intersect": "SELECT c AS id FROM o INTERSECT SELECT id FROM c",
    "rank": "SELECT id, c, ROW_NUMBER() OVER (PARTITION BY c ORDER BY amount, id) AS r FROM o QUALIFY r <= 2",
    "running": "SELECT id, SUM(amount) OVER (PARTITION BY c ORDER BY id) AS s FROM o",
    "first rows": "SELECT id, amount FROM o ORDER BY amount DESC, id LIMIT 3",
    "scalar": "SELECT id, (SELECT MAX(name) FROM c WHERE c.id = o.c) AS m FROM o",
    "explode": "SELECT o.id, x FROM o LATERAL VIEW explode(sequence(0, c)) AS x WHERE x > 0",
    "windows": "SELECT window.start AS start, SUM(amount) AS s FROM o GROUP BY window(at, '10 minutes')",
    "sessions": "SELECT session_window.start AS start, COUNT(*) AS n FROM o GROUP BY session_window(at, '8 minutes')",
    "view": "SELECT id, n FROM `inner` WHERE id > 2",
    "views": "SELECT a.id, b.r FROM `left` a JOIN rank b ON a.id = b.id",
}


def created(names: list[str], orders: list[Any], customers: list[Any]) -> Driver:
    driver = flow(SOURCES, *[f"CREATE VIEW `{name}` AS {QUERIES[name]}" for name in names])
    driver.insert("o", *orders)
    driver.insert("c", *customers)
    driver.step()
    return driver


def needed(name: str) -> list[str]:
    return [*{"view": ["inner"], "views": ["left", "rank"]}.get(name, []), name]


def source_rows(causes: Any, relation: str, rows: list[Any]) -> list[Any]:
    named = [cause.row for cause in causes.causes if cause.relation == relation and cause.row is not None]
    return [row for row in rows if row in named]


@pytest.mark.parametrize("name", list(QUERIES))
def test_a_row_follows_from_its_causes_alone(name: str) -> None:
    driver = created(needed(name), ORDERS, CUSTOMERS)
    rows = driver.table(name)
    assert rows
    for row in rows[:: max(1, len(rows) // 2)]:
        causes = driver.why(name, row)
        assert causes.causes[0].relation == name and causes.causes[0].row == row
        orders, customers = source_rows(causes, "o", ORDERS), source_rows(causes, "c", CUSTOMERS)
        assert orders or customers, "every row has a cause"
        again = created(needed(name), orders, customers)
        assert row in again.table(name), f"{row} does not follow from\n{causes}"


@pytest.mark.parametrize("name", ["filter", "inner", "semi", "self", "intersect", "explode", "rank", "view"])
def test_a_row_vanishes_without_its_causes(name: str) -> None:
    driver = created(needed(name), ORDERS, CUSTOMERS)
    row = driver.table(name)[-1]
    causes = driver.why(name, row)
    for relation, rows in (("o", ORDERS), ("c", CUSTOMERS)):
        used = source_rows(causes, relation, rows)
        if used:
            others = [other for other in rows if other not in used]
            again = created(
                needed(name), others if relation == "o" else ORDERS, others if relation == "c" else CUSTOMERS
            )
            assert row not in again.table(name)


def test_the_answer_is_a_relation_and_a_tree() -> None:
    driver = flow(
        "CREATE STREAM orders (id INT, customer INT); CREATE TABLE customers (id INT, name STRING, PRIMARY KEY (id));"
        "CREATE VIEW sales AS SELECT o.id, name FROM orders o LEFT JOIN customers c ON o.customer = c.id;"
        "CREATE VIEW named AS SELECT name, COUNT(*) AS n FROM sales GROUP BY name"
    )
    driver.insert("orders", {"id": 10, "customer": 1}, {"id": 11, "customer": 2})
    driver.insert("customers", {"id": 1, "name": "Ada"})
    driver.step(at=datetime(2026, 1, 1, 10))
    driver.insert("customers", {"id": 1, "name": "Eve"})
    driver.step(at=datetime(2026, 1, 1, 11))
    assert str(driver.sql("WHY named WHERE name = 'Eve'")).splitlines() == [
        "named: name=Eve, n=1  · epoch 1 (2026-01-01 11:00:00)",
        "    sales: id=10, name=Eve  ← group by name  · epoch 1 (2026-01-01 11:00:00)",
        "        orders: id=10, customer=1  · epoch 0 (2026-01-01 10:00:00)",
        "        customers: id=1, name=Eve  ← left join on o.customer = c.id  · epoch 1 (2026-01-01 11:00:00)",
    ]
    rows = driver.sql("WHY sales WHERE id = 11")
    assert rows[0]["level"] == 0 and json.loads(rows[0]["row"]) == {"id": 11, "name": None}
    assert rows[2] == {
        "level": 1,
        "relation": "customers",
        "row": None,
        "step": "left join on o.customer = c.id; no match",
        "epoch": None,
        "time": None,
        "exact": True,
        "until": None,
    }


def test_a_row_of_the_past_says_which_change_ended_it() -> None:
    driver = flow(SOURCES, "CREATE VIEW v AS SELECT o.id, name FROM o JOIN c ON o.c = c.id")
    driver.insert("o", {"id": 1, "c": 1})
    driver.insert("c", {"id": 1, "name": "ann"})
    driver.step()
    driver.delete("c", {"id": 1, "name": "ann"})
    driver.step()
    assert driver.why("v").causes == [] and "WHY NOT" in str(driver.why("v"))
    causes = driver.sql("WHY v AS OF 0 WHERE id = 1")
    assert [(row["relation"], row["epoch"], row["until"]) for row in causes] == [
        ("v", 0, 1),
        ("o", 0, None),
        ("c", 0, 1),
    ]


def test_rows_of_files_have_the_epoch_of_their_run(tmp_path: Path) -> None:
    for name in ("o", "c"):
        (tmp_path / name).mkdir()
    path = tmp_path.as_posix()
    driver = flow(
        f"CREATE STREAM o (id INT, c INT) USING json OPTIONS (path '{path}/o');"
        f"CREATE TABLE c (id INT, name STRING, PRIMARY KEY (id)) USING json OPTIONS (path '{path}/c');"
        "CREATE VIEW v AS SELECT o.id, name FROM o JOIN c ON o.c = c.id"
    )
    (tmp_path / "o" / "1.json").write_text('{"id": 1, "c": 5}')
    driver.step()
    (tmp_path / "c" / "1.json").write_text('{"id": 5, "name": "ann"}')
    driver.step()
    assert [(row["relation"], row["epoch"]) for row in driver.why("v", "id = 1")] == [("v", 1), ("o", 0), ("c", 1)]
    driver.step()
    past = driver.why("v", "id = 1", as_of=1)
    assert [row["relation"] for row in past] == ["v"]
    assert past.note == "its causes are not kept: `o` cannot be read as of epoch 1"


def test_many_rows_are_bounded() -> None:
    driver = flow(SOURCES, "CREATE VIEW v AS SELECT id FROM o; CREATE VIEW n AS SELECT COUNT(*) AS n FROM o")
    driver.insert("o", *[{"id": i} for i in range(300)])
    driver.step()
    causes = driver.why("v")
    assert len(causes) == 20 and causes.note == "the first 10 of 300 rows"
    causes = driver.why("n")
    assert len(causes) == 100 and causes.note == "the first 100 causes"


@pytest.mark.parametrize(
    ("text", "error", "fact"),
    [
        ("WHY w", UnknownName, "there is no relation `w`"),
        ("WHY o", UnknownName, "`o` is not a view"),
        ("WHY v WHERE z = 1", UnknownName, "z"),
        ("WHY v WHERE", InvalidSql, "ends too early"),
        ("WHY v AS OF 9", NotCommitted, "epoch 9 is not committed yet"),
        ("WHY arrived WHERE id = 1", Unsupported, "not supported for a join at arrival"),
    ],
)
def test_bad_questions(text: str, error: type[RejoinderError], fact: str) -> None:
    driver = flow(
        SOURCES,
        "CREATE STREAM s (id INT, c INT); CREATE VIEW v AS SELECT id FROM o;"
        "CREATE VIEW arrived AS SELECT s.id, name FROM s "
        "JOIN c FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS c ON s.c = c.id",
    )
    driver.insert("s", {"id": 1, "c": 1})
    driver.insert("c", {"id": 1, "name": "ann"})
    driver.step()
    with pytest.raises(error) as refused:
        driver.sql(text)
    assert fact in refused.value.fact + (refused.value.detail or "")
