"""Rows that are gone raise nothing: an epoch fails only because of a row that a batch run on its inputs would have."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from rejoinder.errors import EvaluationError
from rejoinder.testing import Driver
from tests.kit import flow, rows

SOURCES = "CREATE STREAM orders (id INT, cur STRING);CREATE TABLE rates (cur STRING, per INT, PRIMARY KEY (cur))"
Row = dict[str, Any]
NOW = "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
JOINS = {
    "output": "SELECT o.id, 100 DIV r.per AS q FROM orders o JOIN rates r ON o.cur = r.cur",
    "condition": "SELECT o.id, r.per FROM orders o JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > o.id",
    "filter": "SELECT o.id, r.per FROM orders o JOIN rates r ON o.cur = r.cur WHERE 100 DIV r.per > 0",
    "left output": "SELECT o.id, 100 DIV r.per AS q FROM orders o LEFT JOIN rates r ON o.cur = r.cur",
    "left condition": "SELECT o.id, r.per FROM orders o LEFT JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > o.id",
    "left filter": "SELECT o.id, r.per FROM orders o LEFT JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > 0",
    "right": "SELECT o.id, 100 DIV r.per AS q FROM rates r RIGHT JOIN orders o ON o.cur = r.cur",
    "full": "SELECT o.id, r.per FROM orders o FULL JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > o.id",
    "semi condition": "SELECT o.id FROM orders o LEFT SEMI JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > o.id",
    "semi filter": "SELECT o.id FROM orders o LEFT SEMI JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > 0",
    "anti condition": "SELECT o.id FROM orders o LEFT ANTI JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > o.id",
    "anti filter": "SELECT o.id FROM orders o LEFT ANTI JOIN rates r ON o.cur = r.cur AND 100 DIV r.per > 0",
    "cross": "SELECT o.id, 100 DIV r.per AS q FROM orders o CROSS JOIN rates r",
    "unequal": "SELECT o.id, r.per FROM orders o LEFT JOIN rates r ON 100 DIV r.per > o.id",
    "cast": "SELECT o.id, CAST(CASE WHEN r.per = 0 THEN 'n/a' ELSE '1' END AS INT) AS q "
    "FROM orders o JOIN rates r ON o.cur = r.cur",
    "at arrival": f"SELECT o.id, 100 DIV r.per AS q FROM orders o JOIN rates {NOW} AS r ON o.cur = r.cur",
    "left at arrival": f"SELECT o.id, r.per FROM orders o LEFT JOIN rates {NOW} AS r ON o.cur = r.cur "
    "AND 100 DIV r.per > o.id",
    "sum": "SELECT SUM(100 DIV r.per) AS q FROM orders o JOIN rates r ON o.cur = r.cur",
    "min": "SELECT o.cur, MIN(100 DIV r.per) AS q FROM orders o JOIN rates r ON o.cur = r.cur GROUP BY o.cur",
    "distinct": "SELECT DISTINCT 100 DIV r.per AS q FROM orders o JOIN rates r ON o.cur = r.cur",
    "union": "SELECT o.id, 100 DIV r.per AS q FROM orders o JOIN rates r ON o.cur = r.cur "
    "UNION ALL SELECT 0, 0 FROM rates",
    "three": "SELECT o.id, 100 DIV r.per AS q FROM orders o JOIN rates r ON o.cur = r.cur "
    "JOIN orders p ON p.cur = r.cur",
    "group": "SELECT o.id, 100 DIV g.s AS q FROM orders o "
    "JOIN (SELECT cur, SUM(per) AS s FROM rates GROUP BY cur) g ON g.cur = o.cur",
    "having": "SELECT o.cur, COUNT(*) AS n FROM orders o JOIN rates r ON o.cur = r.cur GROUP BY o.cur "
    "HAVING 100 DIV SUM(r.per) > 0",
}


def rate(driver: Driver, per: int, cur: str = "EUR") -> None:
    driver.insert("rates", {"cur": cur, "per": per})


def order(driver: Driver, number: int = 1) -> None:
    driver.insert("orders", {"id": number, "cur": "EUR"})


@cache
def answer(view: str) -> list[tuple[Any, ...]]:
    """The rows of a flow that never saw the bad rate."""
    driver = flow(SOURCES, view, parallelism=2)
    rate(driver, 4)
    order(driver)
    driver.step()
    return rows(driver)


@pytest.mark.parametrize("view", list(JOINS))
class TestGone:
    """A rate of 0 that was corrected."""

    def test_before_any_order_came(self, view: str) -> None:
        driver = flow(SOURCES, JOINS[view], parallelism=2)
        rate(driver, 0)
        driver.step()
        rate(driver, 4)
        driver.step()
        order(driver)
        driver.step()
        assert rows(driver) == answer(JOINS[view])

    def test_in_the_epoch_of_the_order(self, view: str) -> None:
        driver = flow(SOURCES, JOINS[view], parallelism=2)
        rate(driver, 0)
        driver.step()
        rate(driver, 4)
        order(driver)
        driver.step()
        assert rows(driver) == answer(JOINS[view])

    def test_before_the_view_was_made(self, view: str) -> None:
        driver = flow(SOURCES, "SELECT * FROM rates", parallelism=2)
        rate(driver, 0)
        driver.step()
        rate(driver, 4)
        driver.step()
        order(driver)
        driver.step()
        driver.restart()
        if "arrival" not in view:
            driver.sql(f"CREATE VIEW w AS {JOINS[view]}")
            assert rows(driver, "w") == answer(JOINS[view])
            assert sorted((tuple(r.values()) for r in driver.sql(JOINS[view])), key=repr) == answer(JOINS[view])

    def test_a_rate_that_stays_fails_the_epoch_of_the_order(self, view: str) -> None:
        driver = flow(SOURCES, JOINS[view], parallelism=2)
        rate(driver, 0)
        driver.step()
        order(driver)
        with pytest.raises(EvaluationError) as raised:
            driver.step()
        assert "failed on a row" in raised.value.fact and raised.value.detail and raised.value.hint
        assert driver.epoch == 0
        rate(driver, 4)
        order(driver)
        driver.step()
        assert rows(driver) == answer(JOINS[view])


@pytest.mark.parametrize(
    ("between", "restart", "parallelism"), [(0, True, 1), (1, False, 7), (10, True, 7), (40, False, 1)]
)
def test_whatever_is_merged_between(between: int, restart: bool, parallelism: int) -> None:
    driver = flow(SOURCES, JOINS["output"], parallelism=parallelism)
    rate(driver, 0)
    driver.step()
    rate(driver, 4)
    driver.step()
    for number in range(between):
        rate(driver, 1, f"C{number}")
        driver.step()
    if restart:
        driver.restart(parallelism=3)
    order(driver)
    driver.step()
    assert rows(driver) == [(1, 25)]


CHANGELOGS = "CREATE CHANGELOG x (a INT, c INT); CREATE CHANGELOG y (a INT, b INT)"
BAD, GOOD, MATCH = {"a": 1, "b": 0}, {"a": 1, "b": 2}, {"a": 1, "c": 1}
Change = tuple[str, str, Row]


def played(view: str, *epochs: list[Change]) -> list[tuple[Any, ...]]:
    driver = Driver()
    driver.sql(CHANGELOGS)
    driver.sql(f"CREATE VIEW v AS {view}")
    for epoch in epochs:
        for operation, relation, row in epoch:
            (driver.insert if operation == "+" else driver.delete)(relation, row)
        driver.step()
    return rows(driver)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("SELECT x.a, 10 DIV y.b AS q FROM x JOIN y ON x.a = y.a", []),
        ("SELECT x.a, 10 DIV y.b AS q FROM x JOIN y ON x.a = y.a JOIN x z ON z.a = y.a", []),
        ("SELECT * FROM (SELECT x.a, y.b FROM x JOIN y ON x.a = y.a) j WHERE 10 DIV b > 0", []),
        ("SELECT x.a, 10 DIV y.b AS q FROM x LEFT JOIN y ON x.a = y.a", [(1, None)]),
        ("SELECT x.a FROM x LEFT ANTI JOIN y ON x.a = y.a AND 10 DIV y.b > x.c", [(1,)]),
    ],
)
def test_a_bad_row_that_is_deleted_when_its_match_arrives(view: str, expected: list[tuple[Any, ...]]) -> None:
    assert played(view, [("+", "y", BAD)], [("-", "y", BAD), ("+", "x", MATCH)]) == expected


def test_a_match_that_is_deleted_when_a_bad_row_arrives() -> None:
    view = "SELECT x.a, 10 DIV y.b AS q FROM x JOIN y ON x.a = y.a"
    assert played(view, [("+", "x", MATCH)], [("-", "x", MATCH), ("+", "y", BAD)]) == []


def test_a_bad_row_that_comes_and_goes_in_one_epoch() -> None:
    view = "SELECT a, 10 DIV b AS q FROM y"
    assert played(view, [("+", "y", BAD), ("-", "y", BAD), ("+", "y", GOOD)]) == [(1, 5)]


def test_a_sum_that_overflows_between_two_rows_of_an_epoch() -> None:
    view = "SELECT a, SUM(CAST(b AS BIGINT) * 4611686018427387904 DIV 2) AS s FROM y GROUP BY a"
    row = {"a": 1, "b": 1}
    many: list[Change] = [("+", "y", row)] * 3
    assert played(view, [*many, ("+", "y", {"a": 1, "b": -1}), *[("-", "y", row)] * 3]) == [(1, -2305843009213693952)]


def test_a_condition_that_is_false_removes_a_row_on_which_another_one_fails() -> None:
    for where in ("10 DIV y.b > 0 AND y.b <> 0", "y.b <> 0 AND 10 DIV y.b > 0"):
        view = f"SELECT x.a, y.b FROM x JOIN y ON x.a = y.a WHERE {where}"
        assert played(view, [("+", "y", BAD), ("+", "x", MATCH), ("+", "y", GOOD)]) == [(1, 2)]


@pytest.mark.parametrize("parallelism", [1, 7])
def test_the_error_is_the_first_by_its_text(parallelism: int) -> None:
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE CHANGELOG y (a INT, b INT, s STRING)")
    driver.sql("CREATE VIEW v AS SELECT a, 10 DIV b AS q, CAST(s AS INT) AS i FROM y")
    driver.sql("CREATE VIEW w AS SELECT a, 7 DIV b AS q FROM y")
    bad = [{"a": a, "b": 0 if a % 2 else 1, "s": "1" if a % 2 else "one"} for a in range(50)]
    driver.insert("y", *bad)
    with pytest.raises(EvaluationError, match=r"^\[RJ300\] `10 DIV b` failed on a row\nDetail: .*division by zero"):
        driver.step()


class TestKeys:
    """Equalities whose sides can fail."""

    def flow(self, where: str = "") -> Driver:
        driver = Driver(parallelism=3)
        driver.sql("CREATE CHANGELOG x (a INT, c INT); CREATE CHANGELOG t (s STRING, keep BOOLEAN)")
        driver.sql(f"CREATE VIEW v AS SELECT x.a, t.s FROM x JOIN t ON x.a = CAST(t.s AS INT) {where}")
        driver.insert("x", {"a": 1, "c": 1})
        driver.insert("t", {"s": "1", "keep": True})
        driver.step()
        return driver

    def test_a_row_that_comes_and_goes(self) -> None:
        driver = self.flow()
        driver.insert("t", {"s": "one", "keep": True})
        driver.delete("t", {"s": "one", "keep": True})
        driver.insert("x", {"a": 1, "c": 2})
        driver.step()
        assert rows(driver) == [(1, "1"), (1, "1")]

    def test_a_row_that_stays(self) -> None:
        driver = self.flow()
        driver.insert("t", {"s": "one", "keep": True})
        with pytest.raises(EvaluationError, match=r"CAST\(t\.s AS INT\)"):
            driver.step()

    def test_a_row_that_the_filter_removes(self) -> None:
        driver = self.flow("WHERE t.keep")
        driver.insert("t", {"s": "one", "keep": False})
        driver.step()
        driver.insert("x", {"a": 1, "c": 2})
        driver.step()
        assert rows(driver) == [(1, "1"), (1, "1")]
        with pytest.raises(EvaluationError, match=r"CAST\(t\.s AS INT\)"):
            driver.sql("CREATE VIEW w AS SELECT x.a, t.s FROM x JOIN t ON x.a = CAST(t.s AS INT)")


@pytest.mark.parametrize(
    ("view", "filled"),
    [
        ("SELECT COUNT(*) DIV COUNT(DISTINCT a) AS lim FROM y", [(1,)]),
        ("SELECT lim FROM (SELECT COUNT(*) DIV COUNT(DISTINCT a) AS lim FROM y) t", [(1,)]),
        ("SELECT lim FROM (SELECT COUNT(*) DIV COUNT(DISTINCT a) AS lim FROM y) t WHERE lim > 0", [(1,)]),
        ("SELECT y.a, lim FROM y CROSS JOIN (SELECT COUNT(*) DIV COUNT(a) AS lim FROM y) t", [(1, 1)]),
        ("SELECT y.a, lim FROM y JOIN (SELECT COUNT(*) DIV COUNT(a) AS lim FROM y) t ON y.a >= lim", [(1, 1)]),
        ("SELECT COUNT(*) AS n FROM y HAVING COUNT(*) DIV COUNT(a) > 0", [(1,)]),
        ("SELECT COUNT(*) FILTER (WHERE b > 1) / COUNT(*) AS share FROM y", [(1.0,)]),
    ],
)
def test_a_ratio_of_counts_has_a_row_while_there_is_something_to_count(
    view: str, filled: list[tuple[Any, ...]]
) -> None:
    driver = Driver()
    driver.sql(CHANGELOGS)
    driver.sql(f"CREATE VIEW v AS {view}")
    assert rows(driver) == [] and driver.sql(view) == []
    for _ in range(2):
        driver.insert("y", GOOD)
        driver.step()
        assert rows(driver) == filled
        driver.delete("y", GOOD)
        driver.step()
        assert rows(driver) == []
        driver.restart(parallelism=3)


def test_a_ratio_of_nothing_is_not_a_match() -> None:
    driver = Driver()
    driver.sql(CHANGELOGS)
    driver.sql("CREATE VIEW v AS SELECT x.a, lim FROM x LEFT JOIN (SELECT 10 DIV COUNT(*) AS lim FROM y) t ON TRUE")
    driver.insert("x", MATCH)
    driver.step()
    assert rows(driver) == [(1, None)]
    driver.insert("y", GOOD)
    driver.step()
    assert rows(driver) == [(1, 10)]


def test_a_count_of_nothing_that_a_join_divides_by_fails() -> None:
    driver = Driver()
    driver.sql(CHANGELOGS)
    driver.sql("CREATE VIEW v AS SELECT x.a, 10 DIV n AS q FROM x CROSS JOIN (SELECT COUNT(*) AS n FROM y) t")
    driver.insert("x", MATCH)
    with pytest.raises(EvaluationError, match=r"`10 DIV n`"):
        driver.step()
    driver.insert("x", MATCH)
    driver.insert("y", GOOD)
    driver.step()
    assert rows(driver) == [(1, 10)]


EXPRESSIONS = {
    "overflow": ("b + 2147483647 > 0", 1, 0),
    "negation": ("-(b - 2147483647 - 1)", 0, 1),
    "product": ("CAST(b AS BIGINT) * 9223372036854775807", 2, 1),
    "division": ("1 / b", 0, 1),
    "DIV": ("1 DIV b", 0, 1),
    "remainder": ("1 % b", 0, 1),
    "decimal division": ("CAST(1 AS DECIMAL(4, 2)) / b", 0, 1),
    "narrow": ("CAST(b AS TINYINT)", 1000, 1),
    "digits": ("CAST(b AS DECIMAL(2, 1))", 10, 9),
    "number": ("CAST(s AS INT)", "one", "1"),
    "date": ("CAST(s AS DATE)", "someday", "2020-01-01"),
    "timestamp": ("CAST(s AS TIMESTAMP)", "noon", "2020-01-01 12:00:00"),
    "boolean": ("CAST(s AS BOOLEAN)", "maybe", "true"),
    "element": ("array(1, 2)[b]", 2, 1),
    "split_part": ("SPLIT_PART(s, ',', b)", 0, 1),
    "add_months": ("ADD_MONTHS(DATE '2020-01-01', b)", 2000000000, 1),
}


@pytest.mark.parametrize("name", list(EXPRESSIONS))
def test_whatever_can_fail(name: str) -> None:
    """Each in a long CASE as well, so that texts that are used often are evaluated once."""
    text, bad, good = EXPRESSIONS[name]
    driver = Driver()
    driver.sql("CREATE CHANGELOG y (a INT, b INT, s STRING)")
    driver.sql(f"CREATE VIEW v AS SELECT a, {text} AS q, a <> 7 AND {text} IS NULL AS r FROM y")

    def row(value: object) -> Row:
        return {"a": 1, "b": value if isinstance(value, int) else 1, "s": value if isinstance(value, str) else "x,y"}

    driver.insert("y", row(bad), row(good))
    driver.delete("y", row(bad))
    driver.step()
    assert len(rows(driver)) == 1
    driver.insert("y", row(bad))
    with pytest.raises(EvaluationError, match="failed on a row"):
        driver.step()
    assert driver.epoch == 0


def test_views_on_views_with_an_index() -> None:
    driver = Driver(parallelism=3)
    driver.sql(CHANGELOGS)
    driver.sql("CREATE VIEW u AS SELECT x.a, y.b FROM x JOIN y ON x.a = y.a; CREATE INDEX i ON u (a)")
    driver.sql("CREATE VIEW v AS SELECT u.a, 10 DIV u.b AS q FROM u JOIN x ON x.a = u.a")
    driver.insert("x", MATCH)
    driver.insert("y", GOOD)
    driver.step()
    driver.insert("y", BAD)
    driver.delete("x", MATCH)
    driver.step()
    assert rows(driver) == []
    driver.delete("y", BAD)
    driver.insert("x", MATCH)
    driver.step()
    assert rows(driver) == [(1, 5)]


@pytest.mark.parametrize("join", ["JOIN", "LEFT SEMI JOIN"])
def test_a_row_on_which_a_key_and_a_condition_fail_is_not_left_out(join: str) -> None:
    driver = Driver()
    driver.sql(CHANGELOGS)
    driver.sql(f"CREATE VIEW v AS SELECT x.a, x.c FROM x {join} y ON 10 DIV x.c = y.a WHERE 10 DIV x.a > 1")
    driver.insert("x", {"a": 0, "c": 0})
    with pytest.raises(EvaluationError, match="failed on a row"):
        driver.step()
