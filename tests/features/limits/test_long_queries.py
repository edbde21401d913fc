"""Queries of many relations are planned, or refused with the name of a cap; none ends with a raw exception."""

from __future__ import annotations

import pytest

from rejoinder.errors import LimitReached
from rejoinder.testing import Driver


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.sql("CREATE STREAM s (k BIGINT)")
    return driver


def test_a_union_of_many_parts_is_planned(driver: Driver) -> None:
    parts = 300
    driver.sql("CREATE VIEW v AS " + " UNION ALL ".join(f"SELECT k + {i} AS k FROM s" for i in range(parts)))
    assert driver.catalog.find("v") is not None


def test_a_chain_of_ctes_is_planned(driver: Driver) -> None:
    chain = ", ".join(f"c{i} AS (SELECT k + 1 AS k FROM c{i - 1})" for i in range(1, 300))
    driver.sql(f"CREATE VIEW v AS WITH c0 AS (SELECT k FROM s), {chain} SELECT k FROM c299")
    driver.insert("s", {"k": 1})
    assert driver.step()["v"] == [({"k": 300}, 1)]


def test_a_chain_of_views_is_planned(driver: Driver) -> None:
    """Each view is shallow; what recurses is their depth together."""
    views = [f"CREATE VIEW v{i} AS SELECT k + 1 AS k FROM v{i - 1}" for i in range(1, 50)]
    driver.sql("; ".join(["CREATE VIEW v0 AS SELECT k FROM s", *views]))
    driver.insert("s", {"k": 1})
    assert driver.step()["v49"] == [({"k": 50}, 1)]


@pytest.mark.parametrize(
    ("query", "cap"),
    [
        (" UNION ALL ".join(["SELECT k FROM s"] * 501), "max_query_relations"),
        (
            "WITH c0 AS (SELECT k FROM s), "
            + ", ".join(f"c{i} AS (SELECT a.k FROM c{i - 1} a JOIN c{i - 1} b ON a.k = b.k)" for i in range(1, 40))
            + " SELECT k FROM c39",
            "max_query_relations",
        ),
        (
            "SELECT s0.k FROM s s0 " + " ".join(f"JOIN s s{i} ON s0.k = s{i}.k" for i in range(1, 129)),
            "max_join_inputs",
        ),
        (" UNION ".join(f"SELECT k + {i} AS k FROM s" for i in range(300)), "max_rounds"),
    ],
    ids=["union all", "doubling CTEs", "join", "union"],
)
def test_what_would_take_minutes_is_refused_by_name(driver: Driver, query: str, cap: str) -> None:
    with pytest.raises(LimitReached) as caught:
        driver.sql(f"CREATE VIEW v AS {query}")
    assert cap in str(caught.value)
    assert driver.catalog.find("v") is None
