"""Relations in Python become SQL text, and that text the plan that SQL would have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rejoinder.api.relation import Relation
from rejoinder.sql.binder import bind
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
    [A.join, A.left_join, A.right_join, A.full_join, A.semi_join, A.anti_join, A.full_anti_join],
    ids=lambda method: method.__name__,
)
def test_a_join_takes_one_condition(join: Callable[..., Relation]) -> None:
    with pytest.raises(ValueError, match="give either on= or using="):
        join(C)
    with pytest.raises(ValueError, match="give either on= or using="):
        join(C, on=ON, using="k")
