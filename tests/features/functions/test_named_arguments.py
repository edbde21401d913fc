"""Named arguments of declared functions, and declarations that replace others."""

from __future__ import annotations

import pytest

from rejoinder.errors import DefinitionConflict, InvalidSql, TypeMismatch, Unsupported
from rejoinder.testing import Driver
from tests.features.functions import declared

HERE = "tests.features.functions.declared"
TAX = f"FUNCTION tax (amount DOUBLE, country STRING) RETURNS DOUBLE LANGUAGE PYTHON AS '{HERE}:tax'"


@pytest.fixture
def driver() -> Driver:
    """A flow with a scalar function and an aggregate."""
    made = Driver(functions=[HERE])
    made.sql(
        f"CREATE {TAX}; CREATE AGGREGATE FUNCTION wmean (x DOUBLE, w INT) RETURNS DOUBLE LANGUAGE PYTHON "
        f"AS '{HERE}:WeightedMean'; CREATE STREAM t (x DOUBLE, w INT)"
    )
    return made


def test_names_put_arguments_into_order(driver: Driver) -> None:
    driver.sql("CREATE VIEW v AS SELECT wmean(w => w, x => x) AS named, wmean(x, w => w) AS m, wmean(x, w) AS p FROM t")
    driver.insert("t", {"x": 3.0, "w": 2}, {"x": 9.0, "w": 1})
    driver.step()
    (row,) = driver.table("v")
    assert row["named"] == row["m"] == row["p"] == 5.0
    for call in ("tax(country => 'DE', amount => 10.0D)", "tax(10.0D, COUNTRY => 'DE')"):
        assert driver.sql(f"SELECT {call} AS tax") == driver.sql("SELECT tax(10.0D, 'DE') AS tax")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("tax(1.0D, land => 'DE')", "`tax` has no argument `land`"),
        ("tax(1.0D, amount => 1.0D)", "argument `amount` of `tax` is not clear"),
        ("tax(country => 'DE', 1.0D)", "argument `country` of `tax` is not clear"),
        ("tax(amount => 1.0D)", "`tax` takes 2 arguments, not 1"),
    ],
)
def test_wrong_names_are_refused(driver: Driver, call: str, text: str) -> None:
    with pytest.raises(TypeMismatch, match=text):
        driver.sql(f"SELECT {call} AS x")


def test_a_function_is_replaced_unless_a_view_calls_it(driver: Driver) -> None:
    driver.sql(f"CREATE OR REPLACE {TAX}")
    driver.sql(f"CREATE OR REPLACE {TAX.replace('DOUBLE LANGUAGE', 'FLOAT LANGUAGE')}")
    assert "RETURNS FLOAT" in next(row["signature"] for row in driver.sql("SHOW FUNCTIONS") if row["function"] == "tax")
    driver.udf.register("tax", declared.tax, "DOUBLE", arguments="amount DOUBLE, country STRING", replace=True)
    assert driver.sql("SELECT tax(10.0D, 'DE') AS x") == [{"x": 2.5}]
    driver.sql("CREATE VIEW v AS SELECT tax(x, 'DE') AS tax FROM t")
    with pytest.raises(DefinitionConflict, match="function `tax` is called by view `v`"):
        driver.udf.register("tax", declared.tax, "FLOAT", arguments="amount DOUBLE, country STRING", replace=True)
    with pytest.raises(InvalidSql, match="OR REPLACE and IF NOT EXISTS exclude each other"):
        driver.sql(f"CREATE OR REPLACE {TAX.replace('FUNCTION', 'FUNCTION IF NOT EXISTS')}")
    with pytest.raises(Unsupported, match="CREATE OR REPLACE STREAM is not supported"):
        driver.sql("CREATE OR REPLACE STREAM t (x INT)")
