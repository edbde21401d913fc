"""WHY NOT: the questions of a support desk, each answered with the step that fails and the values."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from rejoinder.errors import InvalidSql, RejoinderError, UnknownName, Unsupported
from rejoinder.testing import Driver
from tests.kit import flow

SHOP = """
    CREATE CHANGELOG orders (id INT, customer STRING, amount INT);
    CREATE CHANGELOG customers (id STRING, country STRING, active BOOLEAN);
    CREATE VIEW sales AS
      SELECT o.id, amount, country FROM orders o JOIN customers c ON o.customer = c.id AND active WHERE amount > 5;
"""
ADA = {"id": "ada", "country": "UK", "active": True}


def shop(*orders: dict[str, object], customers: tuple[dict[str, object], ...] = (ADA,), views: str = "") -> Driver:
    driver = flow(SHOP, *([views] if views else []))
    driver.insert("orders", *orders)
    driver.insert("customers", *customers)
    driver.step(at=datetime(2026, 1, 1, 10))
    return driver


def reasons(driver: Driver, text: str) -> list[tuple[str, str]]:
    return [(reason.relation, reason.reason) for reason in driver.sql(text).reasons]


def test_a_key_that_differs_in_case_or_white_space() -> None:
    driver = shop({"id": 1, "customer": "Ada ", "amount": 9})
    answer = driver.sql("WHY NOT sales WHERE id = 1")
    assert str(answer).splitlines() == [
        "sales: no match: no row of `customers` has c.id = Ada ; it is needed by id = 1, customer = Ada , amount = 9",
        "    customers: never arrived: no row with id = Ada  is in the source; the last rows were read in epoch 0 "
        "(2026-01-01 10:00:00)",
        "    customers: near: the nearest values are 'ada' (differs in case, white space or leading zeros)",
    ]
    driver.insert("customers", {**ADA, "id": "Ada "})
    driver.step()
    assert reasons(driver, "WHY NOT sales WHERE id = 1") == [("sales", "present")]


def test_a_null_key() -> None:
    driver = shop({"id": 1, "customer": None, "amount": 9})
    (reason,) = driver.why_not("sales", {"id": 1}).reasons
    assert reason.reason == "null key" and "o.customer is NULL" in reason.detail and "amount = 9" in reason.detail


def test_a_row_that_never_arrived() -> None:
    driver = shop({"id": 1, "customer": "ada", "amount": 9})
    answer = driver.sql("WHY NOT sales WHERE id = 2")
    assert reasons(driver, "WHY NOT sales WHERE id = 2") == [("orders", "never arrived"), ("orders", "near")]
    assert "no row with id = 2" in answer[0]["detail"] and "nearest values are 1" in answer[1]["detail"]


def test_a_filter_and_a_condition_of_the_join() -> None:
    driver = shop(
        {"id": 1, "customer": "ada", "amount": 3},
        {"id": 2, "customer": "bob", "amount": 8},
        customers=(ADA, {"id": "bob", "country": "PT", "active": False}),
    )
    (reason,) = driver.why_not("sales", "id = 1").reasons
    assert reason.reason == "filtered" and "amount > 5 is not true with amount = 3" in reason.detail
    (reason,) = driver.why_not("sales", "id = 2").reasons
    assert reason.reason == "condition" and "active is not true with active = false" in reason.detail


def test_a_filter_on_the_wrong_side_of_an_outer_join() -> None:
    driver = shop(
        {"id": 1, "customer": "nobody", "amount": 9},
        views="CREATE VIEW listed AS SELECT o.id, country FROM orders o LEFT JOIN customers c ON o.customer = c.id "
        "WHERE country <> 'PT'",
    )
    (reason,) = driver.why_not("listed", {"id": 1}).reasons
    assert reason.reason == "filtered" and "country <> 'PT' is not true with country = NULL" in reason.detail


def test_a_row_that_was_there_yesterday() -> None:
    driver = shop({"id": 1, "customer": "ada", "amount": 9})
    driver.delete("customers", ADA)
    driver.step(at=datetime(2026, 1, 2, 10))
    answer = driver.sql("WHY NOT sales WHERE id = 1")
    assert [reason.reason for reason in answer.reasons] == ["retracted", "no match", "retracted"]
    assert (
        answer.reasons[0].detail
        == "the row id = 1, amount = 9, country = UK was retracted in epoch 1 (2026-01-02 10:00:00)"
    )
    assert answer.reasons[2].relation == "customers" and "in epoch 1" in answer.reasons[2].detail


def test_a_row_that_came_too_late() -> None:
    driver = flow(
        "CREATE STREAM s (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);"
        "CREATE VIEW n AS SELECT id, window.start AS start, COUNT(*) AS n FROM s "
        "GROUP BY id, window(ts, '10 minutes') EMIT FINAL"
    )
    for number, minute in enumerate((0, 30, 5)):
        driver.insert("s", {"id": number, "ts": datetime(2026, 1, 1, 12, minute)})
        driver.step()
    (reason,) = driver.why_not("n", {"id": 2}).reasons
    assert reason.reason == "late" and "0:24:00 behind the watermark of `ts`, 2026-01-01 12:29:00" in reason.detail
    (reason,) = driver.why_not("n", {"id": 1}).reasons
    assert reason.reason == "pending" and "blocked by s.ts" in reason.detail


def test_a_partition_that_is_silent_blocks_a_row() -> None:
    driver = flow(
        "CREATE STREAM s (id INT, p INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE) "
        "OPTIONS (partition_by 'p', partitions '2');"
        "CREATE VIEW n AS SELECT id, window.start AS start, COUNT(*) AS n FROM s "
        "GROUP BY id, window(ts, '10 minutes') EMIT FINAL"
    )
    driver.insert(
        "s", {"id": 1, "p": 0, "ts": datetime(2026, 1, 1, 12)}, {"id": 2, "p": 0, "ts": datetime(2026, 1, 1, 13)}
    )
    driver.step()
    (reason,) = driver.why_not("n", {"id": 1}).reasons
    assert reason.reason == "pending" and "blocked by s.ts, partition 1" in reason.detail


def test_a_record_that_was_rejected(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"id": 1, "n": 1}\n{"id": 17, "n": "many"}\n')
    driver = flow(
        f"CREATE STREAM f (id INT, n INT) USING json OPTIONS (path '{tmp_path}', malformed 'divert');"
        "CREATE VIEW v AS SELECT id, n FROM f"
    )
    driver.step()
    assert driver.why_not("v", "id = 17").reasons[0].reason == "rejected"
    assert '"many"' in driver.why_not("v", "id = 17").reasons[0].detail


def test_a_table_of_files_does_not_know_its_past(tmp_path: Path) -> None:
    driver = flow(
        f"CREATE TABLE f (id INT, n INT, PRIMARY KEY (id)) USING json OPTIONS (path '{tmp_path}');"
        "CREATE VIEW v AS SELECT id, n FROM f"
    )
    for number in (1, 2):
        (tmp_path / f"{number}.json").write_text(f'{{"id": 1, "n": {number}}}')
        driver.step()
    assert reasons(driver, "WHY NOT v WHERE id = 1 AND n = 1") == [("v", "retracted"), ("f", "absent"), ("f", "near")]


def test_operations_that_combine_rows() -> None:
    views = """
        CREATE VIEW top AS SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 1;
        CREATE VIEW totals AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
        CREATE VIEW others AS SELECT id FROM orders o
          WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer);
        CREATE VIEW rest AS SELECT customer AS id FROM orders EXCEPT SELECT id FROM customers;
        CREATE VIEW both AS SELECT customer AS id FROM orders INTERSECT SELECT id FROM customers;
        CREATE VIEW upper AS SELECT id, UPPER(customer) AS name FROM orders;
        CREATE VIEW large AS SELECT id FROM sales WHERE amount > 100;
    """
    orders = [{"id": 1, "customer": "ada", "amount": 9}, {"id": 2, "customer": "bob", "amount": 7}]
    driver = shop(*orders, views=views)
    for text, expected, part in (
        ("top WHERE id = 2", [("top", "out of the first rows")], "<= 1 is not true with"),
        ("totals WHERE customer = 'ada' AND total = 5", [("totals", "other value")], "9, not"),
        ("totals WHERE customer = 'eve'", [("orders", "never arrived")], "eve"),
        ("others WHERE id = 1", [("others", "excluded")], "id = ada"),
        ("rest WHERE id = 'ada'", [("rest", "excluded")], "`customers` has it too"),
        ("both WHERE id = 'bob'", [("customers", "never arrived")], "id = bob"),
        ("upper WHERE id = 1 AND name = 'ada'", [("upper", "other value")], "name = ADA, not name = ada"),
        ("large WHERE id = 1", [("large", "filtered")], "amount > 100 is not true with amount = 9"),
        ("large WHERE id = 2", [("sales", "no match"), ("customers", "never arrived")], "c.id = bob"),
    ):
        answer = driver.sql(f"WHY NOT {text}")
        assert reasons(driver, f"WHY NOT {text}") == expected, str(answer)
        assert part in str(answer)


@pytest.mark.parametrize(
    ("text", "error", "fact"),
    [
        ("WHY NOT w WHERE id = 1", UnknownName, "there is no relation `w`"),
        ("WHY NOT orders WHERE id = 1", UnknownName, "`orders` is not a view"),
        ("WHY NOT sales WHERE z = 1", UnknownName, "z"),
        ("WHY NOT sales", Unsupported, "needs the values of the expected row"),
        ("WHY NOT sales WHERE id > 1", Unsupported, "needs the values of the expected row"),
        ("WHY NOT sales LIMIT 1", InvalidSql, "expected `WHERE`"),
    ],
)
def test_bad_questions(text: str, error: type[RejoinderError], fact: str) -> None:
    driver = shop({"id": 1, "customer": "ada", "amount": 9})
    with pytest.raises(error) as refused:
        driver.sql(text)
    assert fact in refused.value.fact + (refused.value.detail or "")
