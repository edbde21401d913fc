"""Relations in Python become SQL text, and that text the plan that SQL would have."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

import rejoinder as rj
from rejoinder.api.relations.relation import Relation
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.logical import ArrivalKind
from rejoinder.sql.bind.bind_query import bind
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
        (A.order_by("x").limit(2).where("k > 1"), "SELECT * FROM (SELECT * FROM a ORDER BY x LIMIT 2) a WHERE k > 1"),
        (A.order_by("x").limit(2).limit(1), "SELECT * FROM (SELECT * FROM a ORDER BY x LIMIT 2) a LIMIT 1"),
        (A.limit(2).distinct(), "SELECT DISTINCT * FROM (SELECT * FROM a LIMIT 2) a"),
        (A.distinct().limit(2), "SELECT DISTINCT * FROM a LIMIT 2"),
        (
            A.order_by("x").limit(2).offset(1),
            "SELECT * FROM (SELECT * FROM a ORDER BY x LIMIT 2) a OFFSET 1",
        ),
        (
            A.select("k").order_by("x").limit(2).union_all(C.select("k")),
            "SELECT * FROM ((SELECT k FROM a ORDER BY x LIMIT 2) UNION ALL SELECT k FROM c)",
        ),
        (
            A.left_join(C.limit(1), on=ON),
            f"SELECT * FROM a LEFT JOIN (SELECT * FROM c LIMIT 1) c ON {ON}",
        ),
        (
            A.select("k").distinct().qualify("row_number() OVER (ORDER BY k) = 1"),
            "SELECT * FROM (SELECT DISTINCT k FROM a) a QUALIFY row_number() OVER (ORDER BY k) = 1",
        ),
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
    final, match = ORDERS.emit("FINAL"), r"EMIT FINAL must end a query[\s\S]*call emit"
    with pytest.raises(InvalidSql, match=match):
        final.where("id > 1")
    with pytest.raises(InvalidSql, match=match):
        RATES.join(final, on="id = rate")
    with pytest.raises(InvalidSql, match=match):
        final.alias("o")


@pytest.fixture
def shop() -> Driver:
    driver = Driver()
    driver.sql(SOURCES + "CREATE TABLE customers (id INT, name STRING, PRIMARY KEY (id))")
    return driver


def test_streams_tables_and_windowed_tables_are_relations_too(shop: Driver) -> None:
    orders, rates = rj.Stream.of(shop, "orders"), rj.Stream.of(shop, "rates")
    customers = rj.Table.of(shop, "customers")
    valid = {"match": "ts >= since", "on": "cur = code"}
    named = Relation.of(shop, "ORDERS").asof_join(Relation.of(shop, "rates"), **valid)
    assert orders.relation().asof_join(rates, **valid).query == named.query
    assert named.columns == ["id", "cur", "ts", "code", "rate", "since"]
    assert customers.relation().right_anti_join(orders, using="id").columns == ["id", "cur", "ts"]
    assert orders.filter("id > 1").alias("o").relation().where("o.cur IS NULL").columns == orders.columns
    daily = orders.group_by("cur").windowed(rj.tumble("1 day")).count("n")
    final = daily.relation().emit("FINAL").through("final")
    assert rj.Table.of(shop, "final", key=["cur", "window"]).columns == final.columns == ["cur", "window", "n"]
    with pytest.raises(InvalidSql, match="`customers` and `rates` belong to different flows"):
        customers.relation().cross_join(Relation("rates", home=Driver()))


@pytest.mark.parametrize("kind", get_args(ArrivalKind))
def test_every_join_at_arrival(shop: Driver, kind: ArrivalKind) -> None:
    orders, right = Relation.of(shop, "orders"), Relation.of(shop, "rates").as_of()
    method = getattr(orders, {"inner": "join"}.get(kind, f"{kind}_join"))
    at_arrival = f"rates FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS rates ON {VALID[0]}"
    assert method(right, on=VALID[0]).explain() == shop.sql(
        f"EXPLAIN SELECT * FROM orders {'' if kind == 'inner' else kind} JOIN {at_arrival}"
    )


def test_renderings_of_what_has_a_name_and_of_a_query(shop: Driver) -> None:
    shop.insert("orders", {"id": 1, "cur": "EUR", "ts": "2026-01-01 00:00:00"})
    shop.step()
    orders = Relation.of(shop, "orders")
    for selection in (orders, rj.Stream.of(shop, "orders"), orders.select("id").distinct(), orders.union_all(orders)):
        assert [row["id"] for row in selection.table()] == [row["id"] for row in selection.stream()]
        assert [len(snapshot.rows) for snapshot in selection.tvr()] == [0, len(selection.table())]
    rj.Table.of(shop, "customers").to_stream(deletes="gone").relation().to("gone")
    assert Relation.of(shop, "gone").table() == []


def test_a_relation_without_a_flow_is_text(shop: Driver) -> None:
    with pytest.raises(InvalidSql, match=r"`orders` belongs to no flow[\s\S]*Relation.of"):
        ORDERS.to("v")
    assert ORDERS.join(rj.Stream.of(shop, "rates"), on=VALID[0]).columns[-1] == "since"


def test_only_a_name_is_read_as_of_a_time(shop: Driver) -> None:
    rates = Relation.of(shop, "rates")
    assert rates.as_of("ts").alias("r").query == rates.alias("r").as_of("ts").query
    for query in (rates.where("rate > 1"), rates.join(ORDERS, on=VALID[0])):
        with pytest.raises(Unsupported, match="a query as of a time is not supported"):
            query.as_of()
