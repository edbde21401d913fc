"""Aggregates as views: there from the start, exact under retractions, filled from what is there, right over joins."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from rejoinder.testing import Driver
from tests.deep import one_seed
from tests.kit import rows

ACCOUNTS, EPOCHS, TRANSFERS = 10, 8, 60


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_sum_over_a_join_stays_zero(parallelism: int) -> None:
    """Ten accounts and transfers between them: the total is zero at every epoch, and no balance misses its half."""
    chance = random.Random(f"{one_seed()} {parallelism}")
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE STREAM transfers (id BIGINT, source INT, target INT, amount BIGINT, fee DOUBLE)")
    driver.sql("""
        CREATE VIEW debits AS SELECT source AS account, sum(amount) AS total, sum(fee) AS fees
          FROM transfers GROUP BY source;
        CREATE VIEW credits AS SELECT target AS account, sum(amount) AS total, sum(fee) AS fees
          FROM transfers GROUP BY target;
        CREATE VIEW balance AS SELECT d.account, c.total - d.total AS amount, c.fees - d.fees AS fees
          FROM debits d JOIN credits c ON d.account = c.account;
        CREATE VIEW total AS SELECT sum(amount) AS amount, count(*) AS accounts, sum(fees) AS fees FROM balance;
        CREATE VIEW halves AS SELECT a.account, b.account AS other FROM balance a FULL JOIN balance b
          ON a.account = b.account
    """)
    everyone = list(range(ACCOUNTS))
    first = [{"id": -1 - at, "source": at, "target": at, "amount": 0, "fee": 0.0} for at in everyone]
    driver.insert("transfers", *first)
    driver.step()
    for epoch in range(EPOCHS):
        for at in range(TRANSFERS):
            source, target = chance.sample(everyone, 2)
            number = epoch * TRANSFERS + at
            fee = chance.choice([0.1, 0.2, 1e15, 1e-9])
            driver.insert(
                "transfers",
                {"id": number, "source": source, "target": target, "amount": chance.randrange(1_000), "fee": fee},
            )
        for row, diff in driver.step()["total"]:
            assert row["amount"] == 0 and row["accounts"] == ACCOUNTS, (epoch, row, diff)
        ((amount, accounts, _),) = rows(driver, "total")
        assert (amount, accounts) == (0, ACCOUNTS)
        assert all(one == other for one, other in rows(driver, "halves"))
        if epoch == EPOCHS // 2:
            driver.restart(parallelism=2)


def test_an_aggregate_without_keys_has_a_row_from_the_start() -> None:
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG a (x BIGINT); CREATE VIEW v AS SELECT count(*) AS n, sum(x) AS s, max(x) AS m FROM a")
    assert rows(driver, "v") == [(0, None, None)]
    assert driver.step() == {"v": []}
    driver.insert("a", {"x": 4}, {"x": None})
    assert driver.step()["v"] == [({"n": 0, "s": None, "m": None}, -1), ({"n": 2, "s": 4, "m": 4}, 1)]
    driver.delete("a", {"x": 4}, {"x": None})
    driver.step()
    driver.restart(parallelism=3)
    assert rows(driver, "v") == [(0, None, None)]
    assert driver.sql("SELECT count(*) AS n FROM a WHERE x > 100") == [{"n": 0}]
    assert driver.sql("SELECT max(x) AS m FROM a HAVING count(*) > 0") == []


def test_a_view_of_an_aggregate_without_keys_is_there_from_the_start_too() -> None:
    driver = Driver()
    driver.sql("""
        CREATE STREAM a (x BIGINT); CREATE STREAM b (x BIGINT);
        CREATE VIEW one AS SELECT count(*) AS n FROM a;
        CREATE VIEW both AS SELECT one.n, o.m FROM one CROSS JOIN (SELECT sum(x) AS m FROM b) o;
        CREATE VIEW full_join AS SELECT one.n, o.m FROM one FULL JOIN (SELECT count(*) AS m FROM b) o ON one.n = o.m
    """)
    assert rows(driver, "both") == [(0, None)]
    assert rows(driver, "full_join") == [(0, 0)]
    driver.insert("b", {"x": 3})
    driver.step()
    assert rows(driver, "both") == [(0, 3)]
    assert rows(driver, "full_join") == [(0, None), (None, 1)]


def test_floats_do_not_drift() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG a (x DOUBLE); CREATE VIEW v AS SELECT sum(x) AS s, avg(x) AS m FROM a")
    driver.insert("a", {"x": 1e20}, {"x": 1.0}, {"x": 0.1})
    driver.step()
    driver.delete("a", {"x": 1e20})
    driver.step()
    assert rows(driver, "v") == [(1.1, 0.55)]
    for _ in range(10):
        driver.insert("a", {"x": 0.1}, {"x": 1e300})
        driver.step()
        driver.delete("a", {"x": 0.1}, {"x": 1e300})
        driver.step()
    assert rows(driver, "v") == [(1.1, 0.55)]


def test_a_new_view_takes_an_aggregate_that_is_there() -> None:
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG a (k INT, x BIGINT); CREATE VIEW v AS SELECT k, max(x) AS m FROM a GROUP BY k")
    driver.insert("a", *({"k": at % 3, "x": at} for at in range(20)))
    driver.step()
    kept = {row["name"]: row["rows"] for row in driver.arrangements()}
    driver.sql("CREATE VIEW w AS SELECT max(x) + 1 AS n FROM a GROUP BY k HAVING k > 0")
    assert {row["name"]: row["rows"] for row in driver.arrangements()} == kept
    assert rows(driver, "w") == [(18,), (20,)]
    driver.sql("DROP VIEW v")
    driver.delete("a", {"k": 2, "x": 17})
    driver.step()
    assert rows(driver, "w") == [(15,), (20,)]


def test_one_row_is_kept_for_each_group() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (k INT, p DECIMAL(10,2)); CREATE VIEW v AS SELECT k, avg(p) AS m FROM a GROUP BY k")
    for epoch in range(40):
        driver.insert("a", *({"k": at % 4, "p": Decimal(epoch)} for at in range(50)))
        driver.step()
    kept = {row["name"]: row["rows"] for row in driver.arrangements()}
    (groups,) = (count for name, count in kept.items() if name.startswith("aggregate#"))
    assert groups < 40, "old rows of a group are netted away as runs merge"


def test_a_query_asked_once_shows_the_changes_of_an_aggregate() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (k INT, x BIGINT)")
    for epoch in range(2):
        driver.insert("a", {"k": 1, "x": epoch + 1})
        driver.step()
    changes = [
        (row["k"], row["s"], row["_undo"]) for row in driver.sql("SELECT STREAM k, sum(x) AS s FROM a GROUP BY k")
    ]
    assert changes == [(1, 1, False), (1, 1, True), (1, 3, False)]
    counted = [(row["n"], row["_undo"]) for row in driver.sql("SELECT STREAM count(*) AS n FROM a")]
    assert counted == [(0, False), (0, True), (1, False), (1, True), (2, False)]
