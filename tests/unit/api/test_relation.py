"""Relations in Python become SQL text, and that text the plan that SQL would have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rejoinder.api.relation import Relation
from rejoinder.errors import InvalidSql
from rejoinder.sql.binder import bind
from rejoinder.testing import Driver
from tests.unit.sql.trees import CATALOG, tree

A, B, C, G = map(Relation, "abcg")
ON = "a.k = c.k"


@pytest.mark.parametrize(
    ("relation", "query"),
    [
        (A.join(C, on=ON), f"SELECT * FROM a JOIN c ON {ON}"),
        (A.left_join(C, on=ON), f"SELECT * FROM a LEFT JOIN c ON {ON}"),
        (A.right_join(C, on=ON), f"SELECT * FROM a RIGHT JOIN c ON {ON}"),
        (A.full_join(C, on=ON), f"SELECT * FROM a FULL JOIN c ON {ON}"),
        (A.semi_join(C, on=ON), f"SELECT * FROM a LEFT SEMI JOIN c ON {ON}"),
        (A.anti_join(C, on=ON), f"SELECT * FROM a LEFT ANTI JOIN c ON {ON}"),
        (A.full_anti_join(C, on=ON), f"SELECT * FROM a FULL ANTI JOIN c ON {ON}"),
        (A.right_semi_join(C, on=ON), f"SELECT * FROM a RIGHT SEMI JOIN c ON {ON}"),
        (A.right_anti_join(C, on=ON), f"SELECT * FROM a RIGHT ANTI JOIN c ON {ON}"),
        (A.cross_join(C), "SELECT * FROM a CROSS JOIN c"),
        (A.left_join(B, using="k"), "SELECT * FROM a LEFT JOIN b USING (k)"),
        (A.full_join(B, using=["k"]).select("k", "x"), "SELECT k, x FROM a FULL JOIN b USING (k)"),
        (
            A.left_join(C, on=ON).anti_join(G, on="z = w").where("x > 1"),
            f"SELECT * FROM a LEFT JOIN c ON {ON} ANTI JOIN g ON z = w WHERE x > 1",
        ),
        (
            A.left_join(C.join(G, on="z = w"), on=ON),
            f"SELECT * FROM a LEFT JOIN (c JOIN g ON z = w) ON {ON}",
        ),
        (
            A.left_join(C.cross_join(G), on=ON),
            f"SELECT * FROM a LEFT JOIN (c CROSS JOIN g) ON {ON}",
        ),
        (
            A.cross_join(C.left_join(G, on="z = w")),
            "SELECT * FROM a CROSS JOIN (c LEFT JOIN g ON z = w)",
        ),
        (
            A.left_join(C.where("z > 1"), on=ON),
            f"SELECT * FROM a LEFT JOIN (SELECT * FROM c WHERE z > 1) c ON {ON}",
        ),
        (
            A.semi_join(C.semi_join(G, on="z = w").where("z > 1"), on="x = z"),
            "SELECT * FROM a SEMI JOIN (SELECT * FROM c SEMI JOIN g ON z = w WHERE z > 1) ON x = z",
        ),
        (A.alias("l").full_join(A.alias("r"), on="l.k = r.x"), "SELECT * FROM a l FULL JOIN a r ON l.k = r.x"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_methods_are_the_words_of_sql(relation: Relation, query: str) -> None:
    assert tree(relation.query) == tree(query)
    assert bind(relation.query, CATALOG).schema == bind(query, CATALOG).schema


@pytest.mark.parametrize(
    "join",
    [
        *(A.join, A.left_join, A.right_join, A.full_join, A.semi_join, A.anti_join),
        *(A.full_anti_join, A.right_semi_join, A.right_anti_join),
    ],
    ids=lambda method: method.__name__,
)
def test_a_join_takes_one_condition(join: Callable[..., Relation]) -> None:
    with pytest.raises(ValueError, match="give either on= or using="):
        join(C)
    with pytest.raises(ValueError, match="give either on= or using="):
        join(C, on=ON, using="k")


SOURCES = """
CREATE STREAM orders (id INT, cur STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM rates (code STRING, rate INT, since TIMESTAMP, WATERMARK since DELAY OF INTERVAL 1 MINUTE);
"""
ORDERS, RATES = Relation("orders"), Relation("rates")
WINDOW = "TUMBLE(ts, INTERVAL 5 MINUTES)"
VALID = "cur = code", "ts >= since"


@pytest.mark.parametrize(
    ("relation", "query"),
    [
        (
            ORDERS.asof_join(RATES, match=VALID[1], on=VALID[0]).select("id", "rate"),
            f"SELECT id, rate FROM orders ASOF JOIN rates MATCH_CONDITION ({VALID[1]}) ON {VALID[0]}",
        ),
        (
            ORDERS.asof_left_join(RATES, match=VALID[1]).select("id", "rate").emit("WHEN WATERMARK PAST ts"),
            f"SELECT id, rate FROM orders ASOF LEFT JOIN rates MATCH_CONDITION ({VALID[1]})"
            " EMIT WHEN WATERMARK PAST ts",
        ),
        (
            ORDERS.where("id > 0").aggregate("cur", "count(*) AS n", by=["cur", WINDOW], having="n > 1").emit("FINAL"),
            f"SELECT cur, count(*) AS n FROM orders WHERE id > 0 GROUP BY cur, {WINDOW} HAVING n > 1 EMIT FINAL",
        ),
        (
            RATES.aggregate("code", "VALIDITY_WINDOW(since) AS w", by=["code", "VALIDITY_WINDOW(since)"]).select(
                "code"
            ),
            "SELECT code FROM (SELECT code, VALIDITY_WINDOW(since) AS w FROM rates"
            " GROUP BY code, VALIDITY_WINDOW(since)) AS rates",
        ),
        (
            ORDERS.aggregate("max(id) AS m").join(RATES, on="m = rate"),
            "SELECT * FROM (SELECT max(id) AS m FROM orders) AS orders JOIN rates ON m = rate",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_versions_groups_and_emission_have_the_plan_of_sql(relation: Relation, query: str) -> None:
    plans = []
    for text in (relation.query, query):
        driver = Driver()
        driver.sql(SOURCES)
        driver.sql(f"CREATE VIEW v AS {text}")
        plans.append(driver.sql("EXPLAIN v"))
    assert plans[0] == plans[1]


def test_emit_comes_last() -> None:
    final, match = ORDERS.emit("FINAL"), r"EMIT FINAL ends a query[\s\S]*say emit"
    with pytest.raises(InvalidSql, match=match):
        final.where("id > 1")
    with pytest.raises(InvalidSql, match=match):
        RATES.join(final, on="id = rate")
    with pytest.raises(InvalidSql, match=match):
        final.alias("o")
