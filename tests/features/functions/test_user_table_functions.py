"""Table functions of the user: several rows of one, in FROM and in LATERAL VIEW."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.errors import FunctionFailed, InvalidSql, TypeMismatch, Unsupported
from rejoinder.testing import Driver
from tests.features.functions import declared

HERE = "tests.features.functions.declared"


def opened(**more: Any) -> Driver:
    driver = Driver(functions=[HERE], **more)
    driver.sql(
        "CREATE CHANGELOG t (id INT, text STRING);"
        "CREATE FUNCTION words (text STRING) RETURNS TABLE (word STRING, at BIGINT) LANGUAGE PYTHON "
        f"AS '{HERE}:words'"
    )
    driver.udtf.register("letters", declared.Letters, "letter STRING", arguments="text STRING")
    return driver


FORMS = {
    "lateral": "SELECT id, word, at FROM t, LATERAL words(text) AS w",
    "left": "SELECT id, w.word, n AS at FROM t LEFT JOIN LATERAL words(text) AS w(word, n)",
    "view": "SELECT id, word, at FROM t LATERAL VIEW words(text) w AS word, at",
    "outer": "SELECT id, word, at FROM t LATERAL VIEW OUTER words(text) w AS word, at",
    "select": "SELECT id, words(text) FROM t",
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_follow_inserts_and_deletes(form: str) -> None:
    driver = opened(check_functions=True)
    driver.sql(f"CREATE VIEW v AS {FORMS[form]}")
    driver.insert("t", {"id": 1, "text": "a b a"}, {"id": 2, "text": None})
    driver.step()
    rows = [{"id": 1, "word": word, "at": at} for at, word in enumerate("aba")]
    empty = [{"id": 2, "word": None, "at": None}] if form in ("left", "outer") else []
    assert sorted(driver.table("v"), key=lambda row: (row["id"], row["at"])) == rows + empty
    driver.delete("t", {"id": 1, "text": "a b a"})
    driver.step()
    assert driver.table("v") == empty


def test_constants_classes_and_failures() -> None:
    driver = opened(show_values=True)
    assert driver.sql("SELECT word, at FROM words('x y') ORDER BY at") == [
        {"word": "x", "at": 0},
        {"word": "y", "at": 1},
    ]
    driver.sql("CREATE VIEW v AS SELECT letter, count(*) AS n FROM t, LATERAL letters(text) GROUP BY letter")
    driver.insert("t", {"id": 1, "text": "aba"})
    driver.step()
    assert sorted(driver.table("v"), key=str) == [{"letter": "a", "n": 2}, {"letter": "b", "n": 1}]
    driver.insert("t", {"id": 2, "text": None})
    with pytest.raises(FunctionFailed, match="it raised TypeError"):
        driver.step()
    for text, error, fact in (
        ("SELECT upper(words(text)) AS x FROM t", Unsupported, "inside an expression"),
        ("SELECT x FROM t, LATERAL words(text) AS w(x)", InvalidSql, "1 names for the 2 columns"),
        ("SELECT id FROM t, LATERAL words(id)", TypeMismatch, "argument `text` of `words` is string, not int"),
        ("SELECT id FROM t WHERE words(text) IS NULL", Unsupported, "returns a table, not a value"),
    ):
        with pytest.raises(error, match=fact):
            driver.sql(f"CREATE VIEW w AS {text}")
