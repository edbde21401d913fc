"""ORDER BY at the end of a view has no effect, and the definition says so."""

from __future__ import annotations

import warnings

import pytest

from tests.kit import flow

EFFECTLESS = (
    "SELECT a, b FROM t ORDER BY b DESC",
    "SELECT a, b FROM t UNION ALL SELECT b, a FROM t ORDER BY b DESC",
    "WITH q AS (SELECT a, b FROM t) SELECT a, b FROM q ORDER BY b DESC",
)
EFFECTIVE = (
    "SELECT a, b FROM t ORDER BY b DESC LIMIT 3",
    "SELECT a, b FROM t ORDER BY b DESC OFFSET 1",
    "SELECT a, row_number() OVER (ORDER BY b) AS n FROM t",
    "SELECT a, 'ORDER BY b' AS b FROM t",
)


@pytest.mark.parametrize("query", EFFECTLESS)
def test_a_notice_names_the_clause_the_view_and_the_remedy(query: str) -> None:
    with pytest.warns(UserWarning, match=r"`ORDER BY b DESC` has no effect on view `v`: .* or add LIMIT"):
        flow("CREATE STREAM t (a INT, b INT)", query)


@pytest.mark.parametrize("query", EFFECTIVE)
def test_there_is_no_notice_where_order_by_has_an_effect(query: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flow("CREATE STREAM t (a INT, b INT)", query)


def test_the_notice_is_about_each_view_that_is_created() -> None:
    driver = flow("CREATE STREAM t (a INT, b INT)")
    order = "SELECT a, b FROM t ORDER BY a"
    with pytest.warns(UserWarning, match="no effect") as given:
        driver.sql(f"CREATE VIEW v AS {order}; CREATE VIEW w AS {order}")
    assert ["view `v`" in str(given[0].message), "view `w`" in str(given[1].message)] == [True, True]
    assert {warning.filename for warning in given} == {__file__}
    driver.insert("t", {"a": 1, "b": 2})
    driver.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        driver.restart()
