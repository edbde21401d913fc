"""Answers that other streaming engines have been known to get wrong, one named test each."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.testing import Driver
from tests.deep import IS_DEEP

Row = dict[str, Any]


def changes(driver: Driver, view: str = "v") -> list[tuple[tuple[Any, ...], int]]:
    return [(tuple(row.values()), diff) for row, diff in driver.step()[view]]


def rows(driver: Driver, view: str = "v") -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in driver.table(view)), key=str)


def two_sides(query: str) -> Driver:
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG l (k INT, x INT); CREATE CHANGELOG r (k INT, y INT)")
    driver.sql(f"CREATE VIEW v AS {query}")
    return driver


def test_null_keys_are_kept_by_outer_joins() -> None:
    driver = two_sides("SELECT l.k AS lk, x, r.k AS rk, y FROM l FULL JOIN r ON l.k = r.k")
    driver.insert("l", {"k": None, "x": 1}, {"k": None, "x": 1})
    driver.insert("r", {"k": None, "y": 2})
    assert changes(driver) == [((None, None, None, 2), 1), ((None, 1, None, None), 2)]
    driver.delete("l", {"k": None, "x": 1})
    assert changes(driver) == [((None, 1, None, None), -1)]


def test_a_row_that_is_matched_never_shows_null() -> None:
    """Both sides arrive in one epoch, or a second match arrives later: no padding at any time."""
    driver = two_sides("SELECT x, y FROM l LEFT JOIN r ON l.k = r.k")
    driver.insert("l", {"k": 1, "x": 1})
    driver.insert("r", {"k": 1, "y": 1})
    assert changes(driver) == [((1, 1), 1)]
    driver.insert("r", {"k": 1, "y": 2})
    assert changes(driver) == [((1, 2), 1)]
    driver.delete("r", {"k": 1, "y": 1}, {"k": 1, "y": 2})
    driver.insert("r", {"k": 1, "y": 3})
    assert changes(driver) == [((1, 1), -1), ((1, 2), -1), ((1, 3), 1)]


@pytest.mark.parametrize(
    ("query", "matched", "unmatched"),
    [
        ("SELECT x FROM l LEFT SEMI JOIN t ON l.k = t.k", [(1,)], []),
        ("SELECT x FROM l LEFT ANTI JOIN t ON l.k = t.k", [], [(1,)]),
        ("SELECT x, y FROM l LEFT JOIN t ON l.k = t.k", [(1, 5)], [(1, None)]),
    ],
)
def test_update_then_delete_without_a_before_image(
    query: str, matched: list[tuple[Any, ...]], unmatched: list[tuple[Any, ...]]
) -> None:
    """A table's source says only what a row is now: what it was has to come from the state."""
    driver = Driver(parallelism=2)
    driver.sql("CREATE STREAM l (k INT, x INT); CREATE TABLE t (id INT, k INT, y INT, PRIMARY KEY (id))")
    driver.sql(f"CREATE VIEW v AS {query}")
    driver.insert("l", {"k": 1, "x": 1})
    driver.insert("t", {"id": 9, "k": 1, "y": 5})
    driver.step()
    assert rows(driver) == matched
    driver.insert("t", {"id": 9, "k": 2, "y": 5})
    driver.step()
    assert rows(driver) == unmatched
    driver.insert("t", {"id": 9, "k": 1, "y": 5})
    driver.step()
    assert rows(driver) == matched
    driver.delete("t", {"id": 9})
    driver.step()
    assert rows(driver) == unmatched


def test_an_update_with_a_residual_condition_on_a_column_that_is_no_key() -> None:
    """The old row passed the condition and the new one does not: its pair has to go, and the padding to come back."""
    driver = Driver(parallelism=2)
    driver.sql("CREATE STREAM l (k INT, x INT); CREATE TABLE t (k INT, y INT, PRIMARY KEY (k))")
    driver.sql("CREATE VIEW v AS SELECT x, y FROM l LEFT JOIN t ON l.k = t.k AND l.x < t.y")
    driver.insert("l", {"k": 1, "x": 5})
    driver.insert("t", {"k": 1, "y": 9})
    assert changes(driver) == [((5, 9), 1)]
    driver.insert("t", {"k": 1, "y": 3})
    assert changes(driver) == [((5, 9), -1), ((5, None), 1)]
    driver.insert("t", {"k": 1, "y": 4})
    assert changes(driver) == []
    driver.insert("t", {"k": 1, "y": 8})
    assert changes(driver) == [((5, None), -1), ((5, 8), 1)]


def test_the_last_partner_leaves_and_a_new_one_comes_in_one_epoch() -> None:
    driver = two_sides("SELECT x FROM l LEFT ANTI JOIN r ON l.k = r.k")
    driver.insert("l", {"k": 1, "x": 1})
    driver.insert("r", {"k": 1, "y": 1})
    assert changes(driver) == []
    driver.delete("r", {"k": 1, "y": 1})
    driver.insert("r", {"k": 1, "y": 2})
    assert changes(driver) == [], "it has a match before and after"
    driver.delete("r", {"k": 1, "y": 2})
    driver.delete("l", {"k": 1, "x": 1})
    driver.insert("l", {"k": 1, "x": 2})
    assert changes(driver) == [((2,), 1)]


def test_a_full_join_over_global_aggregates() -> None:
    """Each side is one row always, also before there is any input."""
    driver = two_sides(
        "SELECT a.n, b.total FROM (SELECT count(*) AS n FROM l) a FULL JOIN (SELECT sum(y) AS total FROM r) b ON TRUE"
    )
    assert rows(driver) == [(0, None)]
    driver.insert("r", {"k": 1, "y": 3}, {"k": 2, "y": 4})
    assert changes(driver) == [((0, None), -1), ((0, 7), 1)]
    driver.insert("l", {"k": 1, "x": 1})
    driver.delete("r", {"k": 1, "y": 3}, {"k": 2, "y": 4})
    assert changes(driver) == [((0, 7), -1), ((1, None), 1)]


QUERIES = [
    "SELECT l.k, x, y FROM l FULL JOIN r ON l.k = r.k AND x < y",
    "SELECT l.k, count(y) AS n, max(y) AS most FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.k",
    "SELECT x FROM l WHERE k NOT IN (SELECT k FROM r WHERE y > 1)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_results_do_not_depend_on_how_rows_are_cut_into_epochs(query: str) -> None:
    source = random.Random(7)
    happenings: list[tuple[str, Row, bool]] = []
    present: dict[str, list[Row]] = {"l": [], "r": []}
    for _ in range(60):
        name = source.choice("lr")
        if present[name] and source.random() < 0.4:
            row = present[name].pop(source.randrange(len(present[name])))
            happenings.append((name, row, False))
        else:
            row = {"k": source.choice([None, 1, 2, 3]), ("x" if name == "l" else "y"): source.randrange(4)}
            present[name].append(row)
            happenings.append((name, row, True))
    results = []
    for sizes in ([60], [1], [7, 2, 13], [3]):
        driver = two_sides(query)
        left = list(happenings)
        for size in itertools.cycle(sizes):
            if not left:
                break
            for name, row, comes in left[:size]:
                (driver.insert if comes else driver.delete)(name, row)
            left = left[size:]
            driver.step()
        results.append(Counter(rows(driver)))
    assert all(result == results[0] for result in results)


@pytest.mark.slow
def test_money_that_moves_adds_up_to_zero_at_every_epoch(tmp_path: Any) -> None:
    """Many transfers between ten accounts: what all accounts gained and lost is zero whenever one looks.

    And a self outer join of the balances, where each side has every account, never shows a NULL.
    """
    transfers, epochs, accounts = (1_000_000, 20, 10) if IS_DEEP else (100_000, 8, 10)
    numbers = np.random.default_rng(3)
    driver = Driver(parallelism=2)
    driver.sql(f"""
        CREATE STREAM transfers (id BIGINT, giver INT, taker INT, amount BIGINT)
          USING parquet OPTIONS (path '{tmp_path}');
        CREATE VIEW debits AS SELECT giver AS account, sum(amount) AS amount FROM transfers GROUP BY giver;
        CREATE VIEW credits AS SELECT taker AS account, sum(amount) AS amount FROM transfers GROUP BY taker;
        CREATE VIEW balances AS SELECT c.account, c.amount - d.amount AS balance
          FROM credits c JOIN debits d ON c.account = d.account;
        CREATE VIEW total AS SELECT sum(balance) AS total FROM balances;
        CREATE VIEW pairs AS SELECT a.account, b.balance FROM balances a LEFT JOIN balances b
          ON a.account = b.account;
        CREATE VIEW holes AS SELECT account FROM pairs WHERE balance IS NULL;
    """)
    everyone = np.arange(accounts)
    size = transfers // epochs
    for epoch in range(epochs):
        giver, taker = numbers.integers(0, accounts, size), numbers.integers(0, accounts, size)
        giver[:accounts], taker[:accounts] = everyone, np.roll(everyone, 1)
        table = {"id": np.arange(size), "giver": giver, "taker": taker, "amount": numbers.integers(1, 1000, size)}
        schema = pa.schema([("id", pa.int64()), ("giver", pa.int32()), ("taker", pa.int32()), ("amount", pa.int64())])
        pq.write_table(pa.table(table).cast(schema), tmp_path / f"{epoch:03d}.parquet")
        driver.step()
        assert driver.table("total") == [{"total": 0}]
        assert driver.table("holes") == []
        assert len(driver.table("pairs")) == accounts
    assert driver.stream("holes") == []
    shown = {row["total"] for row in driver.stream("total")}
    assert shown == {None, 0}, "NULL before the first transfer, and zero ever after"
