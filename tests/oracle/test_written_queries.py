"""Queries written by hand, each for one form that SQL offers, over random changes of three small relations."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.model import Change, SourceSpec
from tests.oracle.scenario import Action, CreateView, Epoch, Scenario, play, rows
from tests.oracle.values import KINDS, Kind
from tests.oracle.written_views import Written, flows, play_views, together

KIND = {kind.sql: kind for kind in KINDS}
SMALL = Kind("INT", "integer", (0, 1, 2, 3))
WIDE = Kind("BIGINT", "integer", (0, 1, 2, 2**40))
PRICE = Kind("DECIMAL(10,2)", "decimal", KIND["DECIMAL(10,2)"].values)
SPECS = (
    SourceSpec("a", "CHANGELOG", {"k": SMALL, "x": WIDE, "s": KIND["STRING"], "d": KIND["DATE"]}),
    SourceSpec("b", "CHANGELOG", {"k": WIDE, "y": SMALL, "f": KIND["DOUBLE"], "t": KIND["TIMESTAMP"]}),
    SourceSpec("c", "TABLE", {"k": SMALL, "z": SMALL, "p": PRICE}, ("k",)),
)

QUERIES = {
    "comma form": "SELECT a.k, b.y FROM a, b WHERE a.k = b.k",
    "cross join with WHERE": "SELECT a.k, b.y FROM a CROSS JOIN b WHERE a.k = b.k",
    "USING": "SELECT k, s, y FROM a JOIN b USING (k)",
    "USING and star": "SELECT * FROM a JOIN b USING (k)",
    "USING twice": "SELECT k, s, y, z FROM a JOIN b USING (k) JOIN c USING (k)",
    "USING, both sides shown": "SELECT k, a.k AS ak, b.k AS bk FROM a JOIN b USING (k)",
    "qualified star": "SELECT a.*, b.y FROM a JOIN b ON a.k = b.k",
    "chain": "SELECT a.k, b.y, c.z FROM a JOIN b ON a.k = b.k JOIN c ON b.y = c.k",
    "star on one key": "SELECT a.s, b.f, c.p FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k",
    "cycle": "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.y = c.k AND c.z = a.x",
    "two keys": "SELECT a.k, b.f FROM a JOIN b ON a.k = b.k AND a.x = b.y",
    "one column against two": "SELECT a.s FROM a JOIN b ON a.k = b.k AND a.k = b.y",
    "self-join": "SELECT l.k, r.s FROM a l JOIN a r ON l.k = r.k",
    "self-join on other columns": "SELECT l.k, r.k AS rk FROM a l JOIN a r ON l.k = r.x",
    "self-join of three": "SELECT x.s, z.s AS zs FROM a x, a y, a z WHERE x.k = y.x AND y.k = z.k AND x.s <> z.s",
    "five inputs": "SELECT a.k FROM a, b, c, a e, b f WHERE a.k = b.k AND b.y = c.k AND c.z = e.k AND e.x = f.k",
    "residual": "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.x < b.y",
    "residual of three": "SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.y = c.k AND a.x + b.y <= c.z",
    "OR in the condition": "SELECT a.k FROM a JOIN b ON a.k = b.k AND (a.s = 'a' OR b.f > 1)",
    "BETWEEN": "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.x BETWEEN b.y - 1 AND b.y + 1",
    "null-safe residual": "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.x IS NOT DISTINCT FROM b.y",
    "constant filter": "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE 1 = 0",
    "constant outputs": "SELECT 1 AS one, 'x' AS x FROM a JOIN b ON a.k = b.k",
    "expression key": "SELECT a.k FROM a JOIN b ON a.k + 1 = b.k",
    "expression keys on both sides": "SELECT a.k FROM a JOIN b ON a.k * 2 = b.k - b.y",
    "text key": "SELECT a.k FROM a JOIN a r ON upper(a.s) = r.s",
    "integer and decimal": "SELECT a.k, c.p FROM a JOIN c ON a.k = c.p",
    "integer and double": "SELECT a.x, b.f FROM a JOIN b ON a.x = b.f",
    "date and timestamp": "SELECT a.d, b.t FROM a JOIN b ON a.d = b.t",
    "widths": "SELECT a.k FROM a JOIN b ON a.x = b.y",
    "projection": "SELECT a.k + b.y AS total, CASE WHEN a.s IS NULL THEN 'none' ELSE a.s END AS s "
    "FROM a JOIN b ON a.k = b.k",
    "JOIN without ON": ["SELECT a.k, b.y FROM a JOIN b", "SELECT a.k, b.y FROM a CROSS JOIN b"],
    "LEFT JOIN without ON": ["SELECT a.k, z FROM a LEFT JOIN c", "SELECT a.k, z FROM a LEFT JOIN c ON TRUE"],
    "columns of one name in a subquery": [
        "SELECT s, y FROM (SELECT * FROM a JOIN b ON a.k = b.k) q",
        "SELECT s, y FROM (SELECT s, y FROM a JOIN b ON a.k = b.k) q",
    ],
    "a count of no rows as a key that can fail": [
        "SELECT s, n FROM a JOIN LATERAL (SELECT count(*) AS n FROM b WHERE b.y = a.k) q ON n + 1 = a.k",
        "SELECT s, n FROM (SELECT *, (SELECT count(*) FROM b WHERE b.y = a.k) AS n FROM a) q WHERE n + 1 = k",
    ],
    "NULL in a UNION": "SELECT k, NULL AS n FROM a UNION ALL SELECT NULL, y FROM b UNION SELECT count(*), NULL FROM c",
    "position of a star": "SELECT * FROM c ORDER BY 2 DESC NULLS LAST, 1, 3 LIMIT 2",
    "position in a UNION": "SELECT k, x FROM a UNION SELECT k, y FROM b ORDER BY 2 NULLS FIRST, 1 NULLS FIRST LIMIT 2",
    "alias in an ORDER BY": "SELECT DISTINCT -z AS k, k AS kk FROM c ORDER BY k + 1, kk LIMIT 2",
    "keys that are not selected": [
        "SELECT rank() OVER (ORDER BY z, k) AS r FROM c ORDER BY c.z + 1 DESC NULLS LAST, c.k LIMIT 2",
        "SELECT r FROM (SELECT rank() OVER (ORDER BY z NULLS FIRST, k) AS r, z, k FROM c) "
        "ORDER BY z DESC NULLS LAST, k LIMIT 2",
    ],
    "grouping in an ORDER BY": [
        "SELECT z, count(*) AS n, rank() OVER (ORDER BY count(*), z) AS r FROM c GROUP BY ROLLUP (z) "
        "ORDER BY CASE WHEN grouping(z) = 0 THEN z END, grouping(z), z LIMIT 2",
        "SELECT z, n, r FROM (SELECT z, grouping(z) AS g, count(*) AS n, "
        "rank() OVER (ORDER BY count(*), z NULLS FIRST) AS r FROM c GROUP BY ROLLUP (z)) "
        "WHERE n > 0 ORDER BY CASE WHEN g = 0 THEN z END NULLS FIRST, g, z NULLS FIRST LIMIT 2",
    ],
    "DISTINCT": "SELECT DISTINCT a.k, b.y FROM a JOIN b ON a.k = b.k",
    "DISTINCT of one": "SELECT DISTINCT s, d FROM a",
    "DISTINCT floats": "SELECT DISTINCT f FROM b",
    "join of a UNION ALL of other widths": "SELECT q.k, c.z FROM (SELECT k FROM a UNION ALL SELECT k FROM b) q "
    "JOIN c ON q.k = c.k",
    "INTERSECT": "SELECT k, x FROM a INTERSECT SELECT y, k FROM b",
    "INTERSECT ALL": "SELECT k FROM a INTERSECT ALL SELECT y FROM b",
    "EXCEPT": "SELECT k, x FROM a EXCEPT SELECT y, k FROM b",
    "EXCEPT ALL": "SELECT k FROM a EXCEPT ALL SELECT k FROM c",
    "set operations on each other": "SELECT k FROM a UNION SELECT y FROM b INTERSECT SELECT z FROM c EXCEPT ALL "
    "SELECT k FROM b",
    "join of an intersection": "SELECT q.k, b.y FROM (SELECT k FROM a INTERSECT ALL SELECT z FROM c) q "
    "JOIN b ON q.k = b.k",
    "groups of a difference": "SELECT k, count(*) AS n FROM (SELECT k FROM a EXCEPT ALL SELECT y FROM b) q GROUP BY k",
    "UNION ALL": "SELECT k, x FROM a UNION ALL SELECT y, k FROM b",
    "UNION": "SELECT k FROM a UNION SELECT y FROM b UNION SELECT z FROM c",
    "UNION ALL of UNION": "(SELECT k FROM a UNION SELECT y FROM b) UNION ALL SELECT z FROM c",
    "UNION of types": "SELECT k AS v FROM a UNION ALL SELECT p FROM c UNION ALL SELECT y FROM b",
    "join of a union": "SELECT u.v, c.p FROM (SELECT k AS v FROM a UNION ALL SELECT y FROM b) u JOIN c ON u.v = c.k",
    "join of distincts": "SELECT l.k, r.y FROM (SELECT DISTINCT k FROM a) l JOIN (SELECT DISTINCT k, y FROM b) r "
    "ON l.k = r.k",
    "self-join of a subquery": "SELECT l.k FROM (SELECT DISTINCT k FROM a) l JOIN (SELECT DISTINCT k FROM a) r "
    "ON l.k = r.k",
    "nested subqueries": "SELECT q.k FROM (SELECT k FROM (SELECT k, x FROM a WHERE x > 0) i WHERE k < 3) q "
    "JOIN b ON q.k = b.k",
    "CTE": "WITH w AS (SELECT k, y FROM b WHERE y > 0) SELECT a.s, w.y FROM a JOIN w ON a.k = w.k",
    "CTE on CTE": "WITH w AS (SELECT k FROM b), v AS (SELECT DISTINCT k FROM w) SELECT v.k FROM v JOIN a ON a.k = v.k",
    "CTE twice": "WITH w AS (SELECT k, y FROM b) SELECT l.k FROM w l JOIN w r ON l.k = r.y",
    "CTE named like a source": "WITH a AS (SELECT k FROM b) SELECT a.k FROM a JOIN c ON a.k = c.k",
    "computed column as key": "SELECT q.n FROM (SELECT k + 1 AS n FROM a) q JOIN b ON q.n = b.k",
    "column names after the alias": "SELECT q.m FROM (SELECT k, x FROM a) q(m, n) JOIN b ON q.m = b.k",
    "join in parentheses": "SELECT a.k FROM a JOIN (b JOIN c ON b.y = c.k) ON a.k = b.k",
}


FULL_ANTI = (
    "SELECT * FROM (SELECT a.k, a.s, b.y FROM a ANTI JOIN b ON {on} CROSS JOIN (SELECT NULL AS y) b) "
    "UNION ALL SELECT NULL, NULL, b.y FROM b ANTI JOIN a ON {on}"
)
# Where DuckDB has other words, its query comes second.
JOINS: dict[str, str | tuple[str, str]] = {
    "LEFT": "SELECT a.k, a.s, b.k AS bk, b.y FROM a LEFT JOIN b ON a.k = b.k",
    "RIGHT": "SELECT a.k, a.s, b.k AS bk, b.y FROM a RIGHT JOIN b ON a.k = b.k",
    "FULL": "SELECT a.k, a.s, b.k AS bk, b.y FROM a FULL JOIN b ON a.k = b.k",
    "SEMI": "SELECT * FROM a SEMI JOIN b ON a.k = b.k",
    "ANTI": "SELECT * FROM a ANTI JOIN b ON a.k = b.k",
    "RIGHT SEMI": ("SELECT * FROM a RIGHT SEMI JOIN b ON a.k = b.k", "SELECT * FROM b SEMI JOIN a ON a.k = b.k"),
    "RIGHT ANTI": ("SELECT * FROM a RIGHT ANTI JOIN b ON a.k = b.k", "SELECT * FROM b ANTI JOIN a ON a.k = b.k"),
    "FULL ANTI": ("SELECT a.k, a.s, b.y FROM a FULL ANTI JOIN b ON a.k = b.k", FULL_ANTI.format(on="a.k = b.k")),
    "FULL ANTI with a residual": (
        "SELECT a.k, a.s, b.y FROM a FULL ANTI JOIN b ON a.k = b.k AND a.x < b.y AND a.s > 'a' AND b.f > 0",
        FULL_ANTI.format(on="a.k = b.k AND a.x < b.y AND a.s > 'a' AND b.f > 0"),
    ),
    "CROSS": "SELECT a.k, c.z FROM a CROSS JOIN c",
    "theta": "SELECT a.k, b.y FROM a JOIN b ON a.x < b.y",
    "LEFT with a table": "SELECT a.k, a.s, c.z FROM a LEFT JOIN c ON a.k = c.k",
    "LEFT of a table": "SELECT c.k, c.z, a.s FROM c LEFT JOIN a ON a.k = c.k",
    "FULL of a table": "SELECT c.k, c.z, a.s FROM c FULL JOIN a ON a.k = c.z",
    "SEMI with a table": "SELECT a.k, a.s FROM a SEMI JOIN c ON a.k = c.k",
    "ANTI of a table": "SELECT c.* FROM c ANTI JOIN a ON a.k = c.z",
    "LEFT with a residual": "SELECT a.k, a.x, b.y, b.f FROM a LEFT JOIN b ON a.k = b.k AND a.x < b.y",
    "FULL with a residual": "SELECT a.k, a.x, b.y, b.f FROM a FULL JOIN b ON a.k = b.k AND a.x < b.y",
    "SEMI with a residual": "SELECT a.k, a.x FROM a SEMI JOIN b ON a.k = b.k AND a.x < b.y",
    "ANTI with a residual": "SELECT a.k, a.x FROM a ANTI JOIN b ON a.k = b.k AND a.x < b.y",
    "LEFT with a table, residual on a column that is not a key": "SELECT a.k, a.x, c.z FROM a LEFT JOIN c "
    "ON a.k = c.k AND a.x <> c.z",
    "LEFT, condition on the left": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k AND a.s > 'a'",
    "LEFT, condition on the right": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k AND b.f > 0",
    "FULL, conditions on each side": "SELECT a.k, b.y FROM a FULL JOIN b ON a.k = b.k AND a.s > 'a' AND b.f > 0",
    "ANTI, conditions on each side": "SELECT a.k FROM a ANTI JOIN b ON a.k = b.k AND a.s > 'a' AND b.f > 0",
    "LEFT on one side only": "SELECT a.k, c.z FROM a LEFT JOIN c ON a.k > 1 AND c.z = 1",
    "LEFT theta": "SELECT a.k, c.z FROM a LEFT JOIN c ON a.x < c.z",
    "FULL theta": "SELECT a.k, c.z FROM a FULL JOIN c ON a.x < c.z",
    "ANTI theta": "SELECT a.k FROM a ANTI JOIN c ON a.x < c.z",
    "LEFT ON TRUE": "SELECT a.k, c.z FROM a LEFT JOIN c ON TRUE",
    "LEFT ON NULL": "SELECT a.k, c.z FROM a LEFT JOIN c ON NULL",
    "NULL beside a key": "SELECT a.k, c.z FROM a FULL JOIN c ON a.k = c.k AND NULL",
    "NULL in WHERE and HAVING": "SELECT k, count(*) AS n FROM a WHERE k > 0 OR NULL GROUP BY k HAVING NULL",
    "FULL ON FALSE": "SELECT a.k, c.z FROM a FULL JOIN c ON FALSE",
    "OR in ON": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k AND (a.x = b.y OR b.f IS NULL)",
    "OR alone in ON": "SELECT a.k, c.z FROM a LEFT JOIN c ON a.k = c.k OR a.x = c.z",
    "null-safe key": "SELECT a.k, b.y FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "LEFT on a null-safe key": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "FULL on a null-safe key": "SELECT a.k, b.k AS bk, b.y FROM a FULL JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "ANTI on a null-safe key": "SELECT a.k, a.s FROM a ANTI JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "null-safe beside plain": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k AND a.x IS NOT DISTINCT FROM b.y",
    "USING, LEFT": "SELECT k, a.k AS ak, b.k AS bk, y FROM a LEFT JOIN b USING (k)",
    "USING, RIGHT": "SELECT k, a.k AS ak, b.k AS bk, y FROM a RIGHT JOIN b USING (k)",
    "USING, FULL": "SELECT k, a.k AS ak, b.k AS bk, y FROM a FULL JOIN b USING (k)",
    "USING, FULL of three": "SELECT k, s, y, z FROM a FULL JOIN b USING (k) FULL JOIN c USING (k)",
    "NATURAL FULL": "SELECT * FROM (SELECT k, x FROM a) l NATURAL FULL JOIN (SELECT k, y FROM b) r",
    "padded is NULL": "SELECT a.k, a.s FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
    "padded column is NULL": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k WHERE b.y IS NULL",
    "padding coalesced": "SELECT a.k, COALESCE(b.y, 0) AS y FROM a LEFT JOIN b ON a.k = b.k WHERE COALESCE(b.y, 0) < 2",
    "padding filtered out": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k WHERE b.y > 0",
    "constant beside padding": "SELECT a.k, q.one FROM a LEFT JOIN (SELECT k, 1 AS one FROM b) q ON a.k = q.k",
    "LEFT over INNER": "SELECT a.k, b.y, c.z FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.y = c.k",
    "INNER over LEFT": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.x = c.k",
    "INNER on a padded column": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k JOIN c ON b.y = c.k",
    "LEFT over LEFT": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.y = c.k",
    "LEFT over LEFT, residual on both": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k "
    "LEFT JOIN c ON b.y = c.k AND a.x < c.z",
    "LEFT on a coalesced key": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k "
    "LEFT JOIN c ON COALESCE(b.y, 1) = c.k",
    "INNER on a coalesced key": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k JOIN c ON COALESCE(b.y, 1) = c.k",
    "LEFT over FULL": "SELECT a.k, b.y, c.z FROM a FULL JOIN b ON a.k = b.k LEFT JOIN c ON b.y = c.k",
    "FULL over LEFT": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k FULL JOIN c ON b.y = c.k",
    "RIGHT over LEFT": "SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON a.k = b.k RIGHT JOIN c ON b.y = c.k",
    "LEFT over INNER over FULL": "SELECT a.s, b.y, c.z, d.s AS ds FROM a FULL JOIN b ON a.k = b.k "
    "JOIN c ON b.y = c.k LEFT JOIN a d ON c.z = d.k AND d.x > b.y",
    "LEFT with a join": "SELECT a.k, b.y, c.z FROM a LEFT JOIN (b JOIN c ON b.y = c.k) ON a.k = b.k",
    "LEFT with a FULL": "SELECT a.k, b.y, c.z FROM a LEFT JOIN (b FULL JOIN c ON b.y = c.k) ON a.k = b.k",
    "LEFT with itself": "SELECT l.k, r.s FROM a l LEFT JOIN a r ON l.k = r.x",
    "FULL with itself": "SELECT l.k, r.s FROM a l FULL JOIN a r ON l.k = r.x AND l.x = r.k",
    "ANTI with itself": "SELECT l.* FROM a l ANTI JOIN a r ON l.k = r.x",
    "ANTI over LEFT": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k ANTI JOIN c ON b.y = c.k",
    "LEFT over ANTI": "SELECT a.k, c.z FROM a ANTI JOIN b ON a.k = b.k LEFT JOIN c ON a.x = c.k",
    "SEMI over INNER over ANTI": "SELECT a.s, c.z FROM a ANTI JOIN b ON a.k = b.y JOIN c ON a.k = c.k "
    "SEMI JOIN b f ON f.k = c.z",
    "DISTINCT over LEFT": "SELECT DISTINCT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k",
    "UNION of LEFT and ANTI": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k UNION ALL "
    "SELECT a.k, 1 FROM a ANTI JOIN b ON a.k = b.k",
    "LEFT of unions": "SELECT l.k, r.y FROM (SELECT k FROM a UNION ALL SELECT k FROM c) l "
    "LEFT JOIN (SELECT k, y FROM b UNION SELECT k, z FROM c) r ON l.k = r.k",
    "EXISTS": "SELECT a.k, a.s FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "NOT EXISTS": "SELECT a.k, a.s FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y < a.x)",
    "EXISTS, not correlated": "SELECT a.k FROM a WHERE EXISTS (SELECT 1 FROM c WHERE z = 1)",
    "NOT EXISTS, not correlated": "SELECT a.k FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE z = 1)",
    "EXISTS of a join": "SELECT a.k FROM a WHERE EXISTS "
    "(SELECT 1 FROM b JOIN c ON b.y = c.k WHERE b.k = a.k AND c.z < a.x)",
    "EXISTS in NOT EXISTS": "SELECT a.k FROM a WHERE NOT EXISTS "
    "(SELECT 1 FROM b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM c WHERE c.k = b.y))",
    "IN": "SELECT a.k FROM a WHERE a.x IN (SELECT y FROM b)",
    "IN, correlated": "SELECT a.k FROM a WHERE a.x IN (SELECT y FROM b WHERE b.k = a.k)",
    "IN with two columns": (
        "SELECT a.k FROM a WHERE (a.k, a.x) IN (SELECT k, y FROM b)",
        "SELECT a.k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.x = b.y)",
    ),
    "NOT IN": "SELECT a.k, a.s FROM a WHERE a.k NOT IN (SELECT z FROM c)",
    "NOT IN, correlated": "SELECT a.k, a.x FROM a WHERE a.x NOT IN (SELECT y FROM b WHERE b.k = a.k)",
    "NOT IN with two columns": (
        "SELECT a.k FROM a WHERE (a.k, a.x) NOT IN (SELECT k, z FROM c)",
        "SELECT a.k FROM a WHERE NOT EXISTS "
        "(SELECT 1 FROM c WHERE (a.k = c.k) IS NOT FALSE AND (a.x = c.z) IS NOT FALSE)",
    ),
    "NOT IN of a union": "SELECT a.k FROM a WHERE a.k NOT IN (SELECT z FROM c UNION ALL SELECT y FROM b)",
    "NOT IN with a constant": "SELECT a.k FROM a WHERE 1 NOT IN (SELECT z FROM c)",
    "IN and NOT IN over LEFT": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k "
    "WHERE a.k IN (SELECT z FROM c) AND b.y NOT IN (SELECT k FROM c)",
}
# A join with a condition on pairs, and one on a column of its padded side above it.
JOINS |= {
    f"{second or 'INNER'} on a side that {first} pads by a condition on pairs": (
        f"SELECT a.k, b.y{'' if second in ('SEMI', 'ANTI') else ', c.z'} "
        f"FROM a {first} JOIN b ON a.k = b.k AND a.x < b.y {second} JOIN c ON b.k = c.k"
    )
    for first in ("LEFT", "RIGHT", "FULL")
    for second in ("", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
}


@together(QUERIES)
@budget(1, deep=2)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_view_equals_the_query(written: list[Written], actions: tuple[Action, ...], parallelism: int) -> None:
    play_views(SPECS, written, actions, parallelism)


@together(JOINS)
@budget(1, deep=2)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_view_of_a_join_equals_the_query(
    written: list[Written], actions: tuple[Action, ...], parallelism: int
) -> None:
    play_views(SPECS, written, actions, parallelism)


VERSIONS = {
    "LEFT": "SELECT a.k, a.x, c.z FROM a LEFT JOIN c ON a.k = c.k",
    "LEFT with a residual": "SELECT a.k, a.x, c.z FROM a LEFT JOIN c ON a.k = c.k AND a.x < c.z",
    "FULL with a residual": "SELECT a.k, a.x, c.z FROM a FULL JOIN c ON a.k = c.k AND a.x < c.z",
    "SEMI": "SELECT a.k, a.x FROM a SEMI JOIN c ON a.k = c.z",
    "SEMI with a residual": "SELECT a.k, a.x FROM a SEMI JOIN c ON a.k = c.k AND a.x < c.z",
    "ANTI": "SELECT a.k, a.x FROM a ANTI JOIN c ON a.k = c.z",
    "ANTI with a residual": "SELECT a.k, a.x FROM a ANTI JOIN c ON a.k = c.k AND a.x < c.z",
    "ANTI of a table": "SELECT c.k, c.z FROM c ANTI JOIN a ON a.k = c.k AND a.x < c.z",
    "NOT IN": "SELECT a.k, a.x FROM a WHERE a.k NOT IN (SELECT z FROM c)",
}


@pytest.mark.parametrize("form", VERSIONS)
def test_updates_and_deletes_of_a_table_need_no_image_of_the_row_before(form: str) -> None:
    """Rows with NULL keys and duplicates on the left; each version of a table's row replaces one that nobody sends."""
    left = [{"k": k, "x": x, "s": None, "d": None} for k, x in ((1, 1), (1, 1), (1, None), (2, 0), (None, 1))]
    deleted = {"k": 1, "z": None, "p": None}

    def version(z: int | None) -> Epoch:
        return rows("c", {"k": 1, "z": z, "p": None})

    actions: tuple[Action, ...] = (
        CreateView("v", VERSIONS[form]),
        rows("a", *left),
        *(version(z) for z in (2, 1, 1, None, 3, 2)),
        Epoch((Change("c", deleted, -1),)),
        version(2),
        Epoch((Change("c", {"k": 1, "z": 1, "p": None}), Change("c", deleted, -1))),
        Epoch((Change("c", {"k": 1, "z": 2, "p": None}), Change("a", left[0], -1))),
        Epoch((Change("c", deleted, -1), Change("a", left[0], -1), Change("a", left[0]))),
    )
    play(Scenario(SPECS, actions))
