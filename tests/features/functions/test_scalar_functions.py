"""Scalar functions of the user: declared by name, evaluated like functions of SQL, named when they fail."""

from __future__ import annotations

import time
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import (
    DefinitionConflict,
    FunctionBlocked,
    FunctionFailed,
    InvalidSql,
    NotDeterministic,
    RejoinderError,
    TypeMismatch,
    UnknownName,
    Unsupported,
)
from rejoinder.ir import allowed_functions
from rejoinder.testing import Driver
from tests.features.functions import declared

HERE = "tests.features.functions.declared"
TAX = f"CREATE FUNCTION tax (amount DOUBLE, country STRING) RETURNS DOUBLE LANGUAGE PYTHON AS '{HERE}:tax'"


def opened(function: str = "tax", options: str = "", **more: Any) -> Driver:
    """A flow with a changelog `orders` and a function `tax`."""
    driver = Driver(functions=[HERE], **more)
    driver.sql("CREATE CHANGELOG orders (id INT, amount DOUBLE, country STRING)")
    driver.sql(TAX.replace(f"{HERE}:tax", f"{HERE}:{function}").replace(" AS '", f" {options} AS '"))
    return driver


def order(number: int, amount: float | None = 8.0, country: str | None = "PT") -> dict[str, Any]:
    return {"id": number, "amount": amount, "country": country}


@pytest.mark.parametrize(("function", "options"), [("tax", ""), ("tax_of_arrays", "OPTIONS (vectorized 'true')")])
def test_a_view_calls_a_function_in_any_expression_and_retracts_its_answers(function: str, options: str) -> None:
    driver = opened(function, options)
    driver.sql(
        "CREATE VIEW v AS SELECT id, tax(amount, country), -tax(tax(amount, 'x'), country) + 1 AS again FROM orders "
        "WHERE coalesce(tax(amount, country), 9) > 1"
    )
    driver.sql("CREATE VIEW s AS SELECT tax(amount, 'y') AS t, count(*) AS n FROM orders GROUP BY tax(amount, 'y')")
    driver.insert("orders", order(1), order(2, None, None), order(3, 1.0), order(4))
    changes = driver.step()
    assert changes["v"] == [
        ({"id": 1, "tax(amount, country)": 2.0, "again": 0.5}, 1),
        ({"id": 2, "tax(amount, country)": None, "again": None}, 1),
        ({"id": 4, "tax(amount, country)": 2.0, "again": 0.5}, 1),
    ]
    driver.restart(parallelism=3)
    driver.delete("orders", order(4))
    assert driver.step()["v"] == [({"id": 4, "tax(amount, country)": 2.0, "again": 0.5}, -1)]
    assert sorted(driver.table("s"), key=str) == [{"t": 0.25, "n": 1}, {"t": 2.0, "n": 1}, {"t": None, "n": 1}]
    assert driver.sql("SELECT tax(100, 'PT') AS t, tax(id, NULL) AS u FROM orders WHERE id = 3") == [
        {"t": 25.0, "u": 0.75}
    ]


def test_nested_types_times_and_functions_without_arguments() -> None:
    driver = Driver(functions=[HERE])
    driver.sql(
        "CREATE CHANGELOG t (row STRUCT<name: STRING>, days ARRAY<STRING>, at TIMESTAMP, price DECIMAL(10, 2));"
        "CREATE FUNCTION described (row STRUCT<name: STRING>, days ARRAY<STRING>, at TIMESTAMP, price DECIMAL(12, 2)) "
        f"RETURNS STRUCT<at: TIMESTAMP, price: DECIMAL(12, 2), names: ARRAY<STRING>> LANGUAGE PYTHON "
        f"AS '{HERE}:described';"
        f"CREATE FUNCTION constant () RETURNS INT LANGUAGE PYTHON AS '{HERE}:constant';"
        "CREATE VIEW v AS SELECT described(row, days, at, price) AS d, constant() + 1 AS c FROM t"
    )
    at = datetime(2026, 3, 29, 0, 30)
    row = {"row": {"name": "a"}, "days": ["b", None], "at": at, "price": Decimal("1.50")}
    driver.insert("t", row, {**row, "at": None})
    driver.step()
    d = {"at": at.replace(hour=1), "price": Decimal("1.50"), "names": ["a", "b", None]}
    assert sorted(driver.table("v"), key=lambda row: row["d"] is None) == [{"d": d, "c": 8}, {"d": None, "c": 8}]


def test_only_rows_that_are_evaluated_are_passed_to_the_function_and_only_rows_that_stay_fail() -> None:
    driver = opened()
    driver.sql("CREATE VIEW v AS SELECT id, CASE WHEN country <> 'XX' THEN tax(amount, country) END AS t FROM orders")
    declared.calls.clear()
    driver.insert("orders", order(1), order(2, 8.0, "XX"))
    assert len(driver.step()["v"]) == 2
    assert {country for _, country in declared.calls} == {"PT"}
    driver.sql("CREATE VIEW w AS SELECT id, tax(amount, country) AS t FROM orders WHERE id > 2")
    driver.insert("orders", order(3, 8.0, "XX"))
    driver.delete("orders", order(3, 8.0, "XX"))
    assert driver.step() == {"v": [], "w": []}


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_failing_row_is_named_and_nothing_is_committed(vectorized: bool) -> None:
    options = "OPTIONS (vectorized 'true')" if vectorized else ""
    driver = opened("tax_of_arrays" if vectorized else "tax", options, show_values=True)
    driver.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1), order(2, 3.5, "XX"))
    with pytest.raises(FunctionFailed) as failed:
        driver.step()
    assert failed.value.code == "RJ301"
    text = str(failed.value)
    assert "function `tax` failed on a row\nDetail: it raised LookupError; it is" in text
    assert "Values: amount = 3.5, country = 'XX': no rate for XX" in text
    assert driver.epoch == -1
    driver.delete("orders", order(2, 3.5, "XX"))  # the rows are still pending
    assert [row["id"] for row, _ in driver.step()["v"]] == [1]


@pytest.mark.parametrize(
    ("function", "options", "detail"),
    [
        ("wrong_type", "", "it returned a str, which is not of its type double"),
        ("short_array", "OPTIONS (vectorized 'true')", "it returned 0 values for 1 rows"),
        ("constant", "OPTIONS (vectorized 'true')", "it raised TypeError"),
    ],
)
def test_an_answer_that_does_not_fit_is_named(function: str, options: str, detail: str) -> None:
    driver = opened(function, options)
    driver.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1))
    with pytest.raises(FunctionFailed, match=detail) as failed:
        driver.step()
    assert "Values: hidden" in str(failed.value)


def test_a_call_that_blocks_is_given_up() -> None:
    driver = opened("waits", "OPTIONS (timeout '50 milliseconds')", show_values=True)
    driver.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1), order(2))
    before = time.monotonic()
    declared.released.clear()
    with pytest.raises(FunctionBlocked, match=r"`tax` did not return within 0.05 seconds[^~]*amount = 8.0"):
        driver.step()
    assert time.monotonic() - before < 5
    declared.released.set()
    assert len(driver.step()["v"]) == 2, "the next attempt calls it again"


def test_check_mode_finds_functions_with_two_answers_for_the_same_arguments() -> None:
    driver = opened("numbered", check_functions=True, show_values=True)
    driver.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1))
    with pytest.raises(NotDeterministic, match=r"\[RJ312\] function `tax` gave two answers .*\n.*\n.*amount = 8.0"):
        driver.step()
    sound = opened(check_functions=True)
    sound.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    sound.insert("orders", order(1), order(2, None), order(3))
    assert len(sound.step()["v"]) == 3


def test_check_mode_keeps_answers_from_epoch_to_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = opened(check_functions=True)
    driver.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1))
    driver.step()
    monkeypatch.setattr(declared, "tax", lambda amount, country: amount / 2)
    driver.delete("orders", order(1))
    with pytest.raises(NotDeterministic, match="called again later"):
        driver.step()


def test_a_restart_needs_the_function_and_the_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = opened(store=tmp_path)
    driver.sql("CREATE VIEW v AS SELECT id, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1))
    driver.step()
    with monkeypatch.context() as patch:
        patch.setattr(allowed_functions, "_allowed", set())
        other = Driver(store=tmp_path)
        other.insert("orders", order(2))
        with pytest.raises(Unsupported, match=f"function `{HERE}:tax` is not allowed"):
            other.step()
    with monkeypatch.context() as patch:
        patch.delattr(declared, "tax")
        driver.restart()
        driver.insert("orders", order(2))
        with pytest.raises(UnknownName, match=f"there is no function `{HERE}:tax`"):
            driver.step()
    driver.restart()
    assert driver.epoch == 0
    driver.insert("orders", order(2))
    assert len(driver.step()["v"]) == 1
    assert b"def tax" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_definitions_are_listed_dropped_and_kept_while_views_use_them() -> None:
    driver = opened(options="OPTIONS (timeout '5 seconds', version '2')")
    driver.sql("CREATE VIEW v AS SELECT tax(amount, country) AS t FROM orders; CREATE VIEW w AS SELECT t FROM v")
    (shown,) = driver.sql("SHOW FUNCTIONS")
    assert shown == {
        "function": "tax",
        "kind": "scalar",
        "signature": "tax(amount DOUBLE, country STRING) RETURNS DOUBLE",
        "reference": f"{HERE}:tax",
        "options": "timeout '5 seconds', version '2'",
        "used_by": ["v"],
    }
    with pytest.raises(DefinitionConflict, match="function `tax` is called by view `v`"):
        driver.sql("DROP FUNCTION tax")
    driver.insert("orders", order(1))
    driver.step()
    with pytest.raises(DefinitionConflict, match="differs from the definition stored in this state"):
        driver.sql(TAX)
    assert driver.sql("DROP FUNCTION tax CASCADE") is None
    assert (driver.catalog.functions, driver.catalog.views) == ((), ())
    driver.sql("DROP FUNCTION IF EXISTS tax")


def test_functions_are_declared_in_python_too() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM orders (id INT, amount DOUBLE, country STRING)")
    for _ in range(2):  # an equal declaration has no effect
        driver.udf.register("tax", declared.tax, "DOUBLE", arguments="amount DOUBLE, country STRING", timeout=5)
    driver.udf.register("doubled", f"{HERE}:doubled", "BIGINT", arguments={"number": "BIGINT"}, version="1")
    driver.sql("CREATE VIEW v AS SELECT doubled(id) AS d, tax(amount, country) AS t FROM orders")
    driver.insert("orders", order(1))
    assert driver.step()["v"] == [({"d": 2, "t": 2.0}, 1)]
    for function, error in (
        (lambda amount: amount, "a lambda"),
        (declared.asynchronous, "is asynchronous"),
    ):
        with pytest.raises(RejoinderError, match=error):
            driver.udf.register("other", function, "DOUBLE", arguments="amount DOUBLE")


BAD: list[tuple[str, type[Exception], str]] = [
    (TAX.replace("tax (", "upper ("), DefinitionConflict, "`upper` is a function of SQL"),
    (TAX.replace("tax (", "enrich ("), DefinitionConflict, "`enrich` is a function of SQL"),
    (TAX.replace("tax (", "window ("), DefinitionConflict, "`window` is a function of SQL"),
    ("CREATE FUNCTION f AS 'shop.f'", InvalidSql, "function `f` has no arguments in parentheses"),
    (TAX.replace("PYTHON", "JAVA"), Unsupported, "function `tax` in JAVA is not supported"),
    (TAX.replace("DOUBLE LANGUAGE", "ARRAY LANGUAGE"), RejoinderError, "ARRAY"),
    (TAX.replace(f"{HERE}:tax", "tax"), InvalidSql, "`tax` is not the name of a function that workers can import"),
    (TAX.replace(f"{HERE}:tax", "os:system"), Unsupported, "function `os:system` is not allowed"),
    (TAX.replace(f"{HERE}:tax", f"{HERE}:taxx"), UnknownName, "there is no function"),
    (TAX.replace(" AS '", " OPTIONS (retries '2') AS '"), UnknownName, "has no option `retries`"),
    (TAX.replace(" AS '", " OPTIONS (timeout 'soon') AS '"), InvalidSql, "soon"),
    (TAX.replace("country STRING", "amount STRING"), InvalidSql, "`amount` appears twice"),
    ("CREATE VIEW v AS SELECT tax(amount) AS t FROM orders", TypeMismatch, "`tax` takes 2 arguments, not 1"),
    ("CREATE VIEW v AS SELECT tax(country, country) AS t FROM orders", TypeMismatch, "`amount` of `tax` is double"),
    ("CREATE VIEW v AS SELECT taxs(amount) AS t FROM orders", Unsupported, "did you mean `tax`"),
]


@pytest.mark.parametrize(("text", "error", "fact"), BAD)
def test_bad_declarations_and_calls_are_refused_when_planned(text: str, error: type[Exception], fact: str) -> None:
    driver = opened()
    if text.startswith("CREATE FUNCTION tax"):
        driver.sql("DROP FUNCTION tax")
    with pytest.raises(error, match=fact):
        driver.sql(text)
