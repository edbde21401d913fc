"""Grouping sets, generators, constants, PIVOT and sessions over random changes; DuckDB says it in its own words."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.model import SourceSpec
from tests.oracle.scenario import Action
from tests.oracle.values import Kind
from tests.oracle.written_views import Written, flows, play_views, together

SMALL = Kind("INT", "integer", (0, 1, 2))
TEXT = Kind("STRING", "text", ("a", "b", ""))
LIST = Kind("ARRAY<DOUBLE>", "list", ([], [0.5], [1.0, None], [None], [2.0, 2.0, 1.5]))
TIME = Kind("TIMESTAMP", "time", tuple(datetime(2026, 1, 1, 12, at) for at in (0, 1, 4, 5, 9, 10, 11, 15, 20, 26, 31)))
SPECS = (
    SourceSpec("a", "CHANGELOG", {"k": SMALL, "s": TEXT, "x": SMALL, "y": SMALL}),
    SourceSpec("l", "CHANGELOG", {"k": SMALL, "v": LIST, "t": TIME}),
    SourceSpec("e", "STREAM", {"k": SMALL, "x": SMALL, "t": TIME}),
)


def groups(sets: str, calls: str, more: str = "") -> str:
    """Groups for DuckDB, which has a row for an empty set over no rows, where Spark has none."""
    return f"SELECT k, s, {calls} FROM a GROUP BY {sets} HAVING COUNT(*) > 0{more}"


def elements(outer: bool = False) -> str:
    """The rows of `l` once for each element, for DuckDB."""
    listed = "CASE WHEN v IS NULL OR len(v) = 0 THEN [NULL] ELSE v END" if outer else "v"
    places = "CASE WHEN v IS NULL OR len(v) = 0 THEN [NULL] ELSE range(len(v)) END" if outer else "range(len(v))"
    return f"(SELECT k, unnest({listed}) AS x, unnest({places})::INT AS p FROM l)"


def sessions(relation: str, keys: str, minutes: int) -> str:
    """A relation with the sessions `w` of its times, for DuckDB."""
    window = f"OVER (PARTITION BY {keys} ORDER BY t)"
    fresh = f"CASE WHEN t - LAG(t) {window} <= INTERVAL '{minutes} minutes' THEN 0 ELSE 1 END"
    numbered = f"SELECT *, SUM(f) {window} AS number FROM (SELECT *, {fresh} AS f FROM {relation} WHERE t IS NOT NULL)"
    whole = f"OVER (PARTITION BY {keys}, number)"
    end = f"MAX(t) {whole} + INTERVAL '{minutes} minutes'"
    return f"(SELECT *, {{'start': MIN(t) {whole}, 'end': {end}}} AS w FROM ({numbered}))"


FIVE = "session_window(t, '5 minutes')"
CALLS = "COUNT(*) AS n, SUM(x) AS total, MIN(x) AS least, MAX(x) AS most"
QUERIES = {
    "ROLLUP": (
        f"SELECT k, s, {CALLS} FROM a GROUP BY ROLLUP(k, s)",
        groups("ROLLUP(k, s)", CALLS),
    ),
    "CUBE with GROUPING": (
        "SELECT k, s, GROUPING(k) AS gk, GROUPING_ID() AS g, COUNT(DISTINCT x) AS n FROM a GROUP BY CUBE(k, s)",
        groups("CUBE(k, s)", "GROUPING(k)::TINYINT AS gk, GROUPING(k, s)::BIGINT AS g, COUNT(DISTINCT x) AS n"),
    ),
    "GROUPING SETS with HAVING": (
        "SELECT k, s, SUM(x) AS n FROM a GROUP BY GROUPING SETS ((k, s), (s), ()) HAVING GROUPING(k) = 1 OR SUM(x) > 1",
        groups("GROUPING SETS ((k, s), (s), ())", "SUM(x) AS n", " AND (GROUPING(k) = 1 OR SUM(x) > 1)"),
    ),
    "a column beside ROLLUP": (
        "SELECT k, s, AVG(y) AS m FROM a WHERE x > 0 GROUP BY k, ROLLUP(s)",
        "SELECT k, s, AVG(y) AS m FROM a WHERE x > 0 GROUP BY k, ROLLUP(s)",
    ),
    "the same set twice": (
        "SELECT k, COUNT(*) AS n FROM a GROUP BY GROUPING SETS (k, k)",
        "SELECT k, COUNT(*) AS n FROM a GROUP BY k UNION ALL SELECT k, COUNT(*) AS n FROM a GROUP BY k",
    ),
    "join of a ROLLUP": (
        "SELECT q.k, q.n, a.y FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY ROLLUP(k)) q JOIN a ON q.k <=> a.k",
        "SELECT q.k, q.n, a.y FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY ROLLUP(k) HAVING COUNT(*) > 0) q "
        "JOIN a ON q.k IS NOT DISTINCT FROM a.k",
    ),
    "VALUES": (
        "SELECT a.x, v.n FROM a JOIN VALUES (0, 'none'), (1, 'one'), (2, NULL) AS v(k, n) ON a.k = v.k",
        "SELECT a.x, v.n FROM a JOIN (VALUES (0, 'none'), (1, 'one'), (2, NULL)) v(k, n) ON a.k = v.k",
    ),
    "LEFT JOIN of VALUES": (
        "SELECT v.k, a.x FROM VALUES (0), (7) AS v(k) LEFT JOIN a ON a.k = v.k",
        "SELECT v.k, a.x FROM (VALUES (0), (7)) v(k) LEFT JOIN a ON a.k = v.k",
    ),
    "a constant row in a union": (
        "SELECT k FROM a UNION ALL SELECT 7 AS k",
        "SELECT k FROM a UNION ALL SELECT 7 AS k",
    ),
    "explode": ("SELECT k, explode(v) AS x FROM l", f"SELECT k, x FROM {elements()}"),
    "posexplode_outer": (
        "SELECT k, posexplode_outer(v) AS (p, x) FROM l",
        f"SELECT k, p, x FROM {elements(outer=True)}",
    ),
    "groups over LATERAL VIEW": (
        "SELECT x, COUNT(*) AS n FROM l LATERAL VIEW explode(v) e AS x WHERE k > 0 GROUP BY x",
        f"SELECT x, COUNT(*) AS n FROM {elements()} WHERE k > 0 GROUP BY x",
    ),
    "join over LATERAL": (
        "SELECT a.s, e.x FROM a JOIN l ON a.k = l.k LEFT JOIN LATERAL explode(l.v) AS e(x)",
        f"SELECT a.s, e.x FROM a JOIN {elements(outer=True)} e ON a.k = e.k",
    ),
    "stack": (
        "SELECT k, stack(2, 'x', x, 'y', y) AS (name, value) FROM a",
        "SELECT k, 'x' AS name, x AS value FROM a UNION ALL SELECT k, 'y', y FROM a",
    ),
    "PIVOT": (
        "SELECT * FROM (SELECT k, s, x FROM a) PIVOT (SUM(x) AS t, COUNT(*) AS n FOR s IN ('a', 'b' AS z))",
        "SELECT k, SUM(x) FILTER (WHERE s = 'a') AS a_t, NULLIF(COUNT(*) FILTER (WHERE s = 'a'), 0) AS a_n, "
        "SUM(x) FILTER (WHERE s = 'b') AS z_t, NULLIF(COUNT(*) FILTER (WHERE s = 'b'), 0) AS z_n FROM a GROUP BY k",
    ),
    "UNPIVOT": (
        "SELECT * FROM a UNPIVOT (value FOR name IN (x, y AS other))",
        "SELECT k, s, 'x' AS name, x AS value FROM a WHERE x IS NOT NULL "
        "UNION ALL SELECT k, s, 'other', y FROM a WHERE y IS NOT NULL",
    ),
    "UNPIVOT INCLUDE NULLS": (
        "SELECT * FROM a UNPIVOT INCLUDE NULLS (value FOR name IN (x, y))",
        "SELECT k, s, 'x' AS name, x AS value FROM a UNION ALL SELECT k, s, 'y', y FROM a",
    ),
    "sessions": (
        f"SELECT k, {FIVE} AS w, COUNT(*) AS n FROM l GROUP BY k, {FIVE}",
        f"SELECT k, w, COUNT(*) AS n FROM {sessions('l', 'k', 5)} GROUP BY k, w",
    ),
    "sessions of a stream": (
        f"SELECT k, {FIVE} AS w, {CALLS} FROM e GROUP BY k, {FIVE}",
        f"SELECT k, w, {CALLS} FROM {sessions('e', 'k', 5)} GROUP BY k, w",
    ),
    "sessions of all": (
        "SELECT SESSION(t, INTERVAL 3 MINUTES).start AS s, MIN(k) AS n, COUNT(DISTINCT k) AS d FROM l "
        "WHERE k > 0 GROUP BY SESSION(t, INTERVAL 3 MINUTES) HAVING COUNT(*) > 1",
        f"SELECT w.start AS s, MIN(k) AS n, COUNT(DISTINCT k) AS d FROM "
        f"{sessions('(SELECT 1 AS o, * FROM l WHERE k > 0)', 'o', 3)} GROUP BY w HAVING COUNT(*) > 1",
    ),
    "ROLLUP beside sessions": (
        f"SELECT k, {FIVE} AS w, MAX(x) AS n FROM e GROUP BY {FIVE}, ROLLUP(k)",
        f"SELECT k, w, MAX(x) AS n FROM {sessions('e', 'k', 5)} GROUP BY k, w UNION ALL "
        f"SELECT NULL, w, MAX(x) FROM {sessions('(SELECT 1 AS o, * FROM e)', 'o', 5)} GROUP BY w",
    ),
    "join of sessions": (
        f"SELECT a.s, q.w, q.n FROM (SELECT k, {FIVE} AS w, COUNT(*) AS n FROM e GROUP BY k, {FIVE}) q "
        "JOIN a ON a.k = q.k",
        f"SELECT a.s, q.w, q.n FROM (SELECT k, w, COUNT(*) AS n FROM {sessions('e', 'k', 5)} GROUP BY k, w) q "
        "JOIN a ON a.k = q.k",
    ),
    "CUMULATE": (
        "SELECT CUMULATE(t, INTERVAL 5 MINUTES, INTERVAL 10 MINUTES) AS w, COUNT(*) AS n FROM e WHERE t IS NOT NULL "
        "GROUP BY CUMULATE(t, INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)",
        "SELECT {'start': s, 'end': s + to_minutes(m)} AS w, COUNT(*) AS n FROM (SELECT t, m, "
        "time_bucket(INTERVAL '10 minutes', t) AS s FROM e, (VALUES (5), (10)) steps(m)) "
        "WHERE t < s + to_minutes(m) GROUP BY s, m",
    ),
    "window_time": (
        "SELECT window_time(TUMBLE(t, INTERVAL 5 MINUTES)) AS w FROM e",
        "SELECT time_bucket(INTERVAL '5 minutes', t) + INTERVAL '299.999999 seconds' AS w FROM e",
    ),
}


@together(QUERIES)
@budget(1, deep=4)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_view_equals_the_query(written: list[Written], actions: tuple[Action, ...], parallelism: int) -> None:
    play_views(SPECS, written, actions, parallelism)
