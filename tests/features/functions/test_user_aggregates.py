"""Aggregates of the user: states of plain data that follow every change."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rejoinder.errors import BrokenFunction, FunctionFailed, Unsupported
from rejoinder.testing import Driver
from tests.features.functions import declared

HERE = "tests.features.functions.declared"
QUERY = (
    "SELECT k, wmean(x, w) AS m, wmean(DISTINCT x, w) AS d, wmean(x, w) FILTER (WHERE w > 1) AS f, sum(x * w) / "
    "sum(CASE WHEN x IS NOT NULL THEN w END) AS expected FROM t GROUP BY k"
)


def opened(function: str = "WeightedMean", returns: str = "DOUBLE", **more: Any) -> Driver:
    driver = Driver(functions=[HERE], show_values=True, **more)
    driver.sql(
        "CREATE CHANGELOG t (k INT, x DOUBLE, w INT);"
        f"CREATE AGGREGATE FUNCTION wmean (x DOUBLE, w INT) RETURNS {returns} LANGUAGE PYTHON AS '{HERE}:{function}'"
    )
    return driver


def row(k: int, x: float | None, w: int = 1) -> dict[str, Any]:
    return {"k": k, "x": x, "w": w}


@pytest.mark.parametrize("check", [False, True])
def test_values_follow_inserts_and_deletes(check: bool) -> None:
    driver = opened(parallelism=2, check_functions=check)
    driver.sql(f"CREATE VIEW v AS {QUERY}; CREATE VIEW whole AS SELECT wmean(x, w) AS m FROM t")
    driver.sql("CREATE VIEW beside AS SELECT k, x, wmean(x, w) OVER (PARTITION BY k) AS m FROM t")
    assert driver.table("whole") == [{"m": None}], "the value of no rows"
    chosen, rows = random.Random(5), list[dict[str, Any]]()
    for epoch in range(6):
        removed = [rows.pop(chosen.randrange(len(rows))) for _ in range(min(len(rows), 4))]
        added = [
            row(chosen.randrange(3), chosen.choice([None, 0.5, 1.25, 3.0]), chosen.choice([1, 2])) for _ in range(9)
        ]
        rows += added
        driver.delete("t", *removed)
        driver.insert("t", *added, row(1, 0.5), row(1, 0.5))
        driver.delete("t", row(1, 0.5), row(1, 0.5))
        driver.step()
        if epoch == 2:
            driver.restart(parallelism=1)
        for found in driver.table("v"):
            mine = [each for each in rows if each["k"] == found["k"] and each["x"] is not None]
            assert found["m"] == pytest.approx(found["expected"])
            pairs = {(each["x"], each["w"]) for each in mine}
            heavy = [(each["x"], 2) for each in mine if each["w"] > 1]
            for name, values in (("d", pairs), ("f", heavy)):
                weight = sum(w for _, w in values)
                assert found[name] == (sum(x * w for x, w in values) / weight if weight else None)
        assert len(driver.table("beside")) == len(rows)


@pytest.mark.parametrize(
    ("function", "returns", "rows", "error", "text"),
    [
        ("Grown", "BIGINT", [row(1, 1.0, -1)], FunctionFailed, "`wmean` failed on a row\nDetail: it raised ValueError"),
        ("Grown", "BIGINT", [row(1, x / 1, 1) for x in range(3)], FunctionFailed, "`finish` returned a str, which is"),
        ("Objects", "BIGINT", [row(1, 1.0)], BrokenFunction, "its state has a object, which is not plain data"),
        ("Letters", "BIGINT", [row(1, 1.0)], BrokenFunction, "it has no method `create`"),
        ("Last", "DOUBLE", [row(1, 1.0)], BrokenFunction, "`retract` does not undo `add`"),
    ],
)
def test_an_aggregate_that_fails_is_named(
    function: str, returns: str, rows: list[dict[str, Any]], error: type[Exception], text: str
) -> None:
    driver = opened(function, returns, check_functions=True)
    driver.sql("CREATE VIEW v AS SELECT k, wmean(x, w) AS m FROM t GROUP BY k")
    driver.insert("t", *rows)
    with pytest.raises(error, match=text):
        driver.step()
    assert driver.epoch == -1


def test_an_aggregate_without_retract_is_for_streams() -> None:
    driver = opened("Grown", "BIGINT")
    driver.sql("CREATE VIEW v AS SELECT k, wmean(x, w) AS m FROM t GROUP BY k")
    driver.insert("t", row(1, 1.0), row(1, 2.0))
    assert driver.step()["v"] == [({"k": 1, "m": 2}, 1)]
    driver.delete("t", row(1, 1.0))
    with pytest.raises(BrokenFunction, match="it has no method `retract`"):
        driver.step()


def test_calls_in_other_places_are_refused() -> None:
    driver = opened()
    for query, fact in (
        ("SELECT k FROM t WHERE wmean(x, w) > 1", "the aggregate `wmean` is not supported here"),
        ("SELECT wmean(x, w) OVER (PARTITION BY k ORDER BY x) AS m FROM t", "only over a whole partition"),
    ):
        with pytest.raises(Unsupported, match=fact):
            driver.sql(f"CREATE VIEW v AS {query}")
    driver.udaf.register("other", declared.WeightedMean, "DOUBLE", arguments="x DOUBLE, w INT")
    assert driver.sql("SELECT other(x, w) AS m FROM VALUES (1D, 1), (4D, 2) AS v(x, w)") == [{"m": 3.0}]


@pytest.mark.parametrize("check", [False, True])
def test_rows_that_do_not_remain_cannot_fail(check: bool) -> None:
    """Rows that cancel out, and groups without rows, are not in the batch query: no method sees them."""
    driver = opened("Ratio", check_functions=check)
    driver.sql(
        "CREATE VIEW v AS SELECT k, wmean(x, w) AS m, sum(x) AS s FROM t GROUP BY k;"
        "CREATE VIEW b AS SELECT a.k, wmean(a.x, a.w) AS m FROM t a JOIN t b ON a.k = b.k WHERE a.w > 0 OR b.w > 0 "
        "GROUP BY a.k;"
        "CREATE VIEW p AS SELECT k, x, wmean(x, w) OVER (PARTITION BY k) AS m FROM t"
    )
    driver.insert("t", row(1, 3.0), row(2, 5.0))
    driver.step()
    driver.insert("t", row(1, 1.0, -1), row(3, 1.0, -1))
    driver.delete("t", row(3, 1.0, -1), row(1, 1.0, -1), row(2, 5.0))
    driver.step()
    assert driver.table("v") == [{"k": 1, "m": 3.0, "s": 3.0}]
    assert driver.table("b") == [{"k": 1, "m": 3.0}]
    assert driver.table("p") == [{"k": 1, "x": 3.0, "m": 3.0}]
    driver.delete("t", row(1, 3.0))
    driver.step()
    assert driver.table("v") == driver.table("b") == driver.table("p") == []
    driver.insert("t", row(1, 1.0, -1))
    with pytest.raises(FunctionFailed, match="it raised ValueError"):
        driver.step()
