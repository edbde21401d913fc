"""Queries written by hand, each for one form that SQL offers, over random changes of three small relations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM, epochs
from tests.oracle.model import Model, SourceSpec
from tests.oracle.queries import Draw
from tests.oracle.scenario import Action, CreateView, Restart, Scenario, play
from tests.oracle.values import KINDS, Kind

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
    "DISTINCT": "SELECT DISTINCT a.k, b.y FROM a JOIN b ON a.k = b.k",
    "DISTINCT of one": "SELECT DISTINCT s, d FROM a",
    "DISTINCT floats": "SELECT DISTINCT f FROM b",
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


@st.composite
def flows(draw: Draw) -> tuple[Action, ...]:
    """Epochs before and after the view is made, with a restart somewhere."""
    model = Model({spec.name: spec for spec in SPECS})
    before = [draw(epochs(model, 10)) for _ in range(draw(st.integers(0, 2)))]
    after = [draw(epochs(model, 10)) for _ in range(draw(st.integers(1, 4)))]
    return (*before, CreateView("v", ""), *after[:2], Restart(draw(PARALLELISM)), *after[2:])


@pytest.mark.parametrize("form", QUERIES)
@budget(5)
@given(actions=flows(), parallelism=PARALLELISM)
def test_the_view_equals_the_query(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    view = CreateView("v", QUERIES[form])
    play(Scenario(SPECS, tuple(view if isinstance(a, CreateView) else a for a in actions), parallelism))
