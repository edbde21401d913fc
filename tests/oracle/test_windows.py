"""Windows of time in SELECT, GROUP BY and joins of every kind, over random times; DuckDB counts them in its own way."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.model import SourceSpec
from tests.oracle.scenario import Action
from tests.oracle.values import Kind
from tests.oracle.written_views import Written, flows, play_views, together

MOMENTS = [
    datetime(2026, 1, 1, 12, *rest)
    for rest in ((0,), (3,), (4, 59, 999999), (5,), (7, 30), (10,), (10, 0, 1), (14,), (20,))
]
TIME = Kind("TIMESTAMP", "time", (*MOMENTS, datetime(1969, 12, 31, 23, 58), datetime(1970, 1, 1)))
LOCAL = Kind("TIMESTAMP_NTZ", "time", TIME.values)
SMALL = Kind("INT", "integer", (0, 1, 2))
TICK = Kind("INT", "integer", (-11, -10, -1, 0, 4, 9, 10, 2**31 - 1, -(2**31)))
WIDE = Kind("BIGINT", "integer", (*TICK.values, 2**62 - 1, 2**62, 2**63 - 1, -(2**63)))
SPECS = (
    SourceSpec("l", "CHANGELOG", {"k": SMALL, "x": SMALL, "t": TIME, "i": TICK}),
    SourceSpec("r", "CHANGELOG", {"k": SMALL, "y": SMALL, "t": TIME, "i": WIDE}),
    SourceSpec("m", "TABLE", {"k": SMALL, "t": TIME, "n": LOCAL, "z": SMALL}, ("k",)),
)


def tumble(time: str) -> str:
    """The five minutes of a time, for DuckDB."""
    start = f"time_bucket(INTERVAL '5 minutes', {time}, TIMESTAMP '1970-01-01')"
    return f"CASE WHEN {time} IS NOT NULL THEN {{'start': {start}, 'end': {start} + INTERVAL '5 minutes'}} END"


def counted(time: str, slide: int = 10, back: int = 0) -> str:
    """The ten of an integer that starts at a multiple of a slide, for DuckDB. From 2^62 on it is not a time."""
    time = f"{time}::BIGINT"
    start = f"({time} - {time} % {slide} - CASE WHEN {time} % {slide} < 0 THEN {slide} ELSE 0 END - {back})"
    known = f"{time} BETWEEN -{2**62 - 1} AND {2**62 - 1}"
    return f"CASE WHEN {known} THEN {{'start': {start}::BIGINT, 'end': ({start} + 10)::BIGINT}} END"


def hopped(relation: str, columns: Iterable[str], slide: int, size: int) -> str:
    """A relation with the windows `w` of its times: found among all that could be, for DuckDB."""
    first = f"time_bucket(INTERVAL '{slide} minutes', t, TIMESTAMP '1970-01-01') - to_minutes({slide} * step)"
    listed = ", ".join(columns)
    found = f"SELECT {listed}, t, {first} AS s FROM {relation}, range({-(-size // slide)}) steps(step)"
    return (
        f"(SELECT {listed}, {{'start': s, 'end': s + to_minutes({size})}} AS w FROM ({found}) "
        f"WHERE s + to_minutes({size}) > t UNION ALL SELECT {listed}, NULL FROM {relation} WHERE t IS NULL)"
    )


def versions(keys: str, value: str, relation: str) -> str:
    """One row per key and time, valid until the next, for DuckDB."""
    end = f"COALESCE(LEAD(t) OVER (PARTITION BY {keys} ORDER BY t), TIMESTAMP '9999-12-31')"
    grouped = f"SELECT {keys}, t, MAX({value}) AS v FROM {relation} WHERE t IS NOT NULL GROUP BY {keys}, t"
    return f"(SELECT {keys}, v, {{'start': t, 'end': {end}}} AS w FROM ({grouped}))"


FIVE = "INTERVAL '5' MINUTE"
HOP = "HOP({}.t, INTERVAL 5 MINUTES, INTERVAL 12 MINUTES)"
VALID = "(SELECT k, MAX(y) AS v, VALIDITY_WINDOW(t) AS w FROM r GROUP BY k, VALIDITY_WINDOW(t))"
VALID_DUCKDB = versions("k", "y", "r")
INSIDE = "l.k = v.k AND WINDOW_START(v.w) <= l.t AND l.t < WINDOW_END(v.w)"
INSIDE_DUCKDB = "l.k = v.k AND v.w.start <= l.t AND l.t < v.w.end"
QUERIES = {
    "TUMBLE": (f"SELECT k, TUMBLE(t, {FIVE}) AS w FROM l", f"SELECT k, {tumble('t')} AS w FROM l"),
    "window leaves NULL out": (
        "SELECT k, window(t, '5 minutes') AS w FROM l",
        f"SELECT k, {tumble('t')} AS w FROM l WHERE t IS NOT NULL",
    ),
    "ends": (
        f"SELECT WINDOW_START(w) AS s, w.end AS e FROM (SELECT TUMBLE(n, {FIVE}) AS w FROM m)",
        f"SELECT w.start AS s, w.end AS e FROM (SELECT {tumble('n')} AS w FROM m)",
    ),
    "HOP": (
        "SELECT k, x, HOP(t, INTERVAL 5 MINUTES, INTERVAL 12 MINUTES) AS w FROM l",
        f"SELECT k, x, w FROM {hopped('l', ('k', 'x'), 5, 12)}",
    ),
    "HOP beside WHERE": (
        "SELECT k, window(t, '10 minutes', '5 minutes').start AS s FROM l WHERE x > 0",
        f"SELECT k, w.start AS s FROM {hopped('l', ('k', 'x'), 5, 10)} WHERE x > 0 AND w IS NOT NULL",
    ),
    "DISTINCT": (f"SELECT DISTINCT TUMBLE(t, {FIVE}) AS w FROM l", f"SELECT DISTINCT {tumble('t')} AS w FROM l"),
    "GROUP BY TUMBLE": (
        f"SELECT k, TUMBLE(t, {FIVE}) AS w, COUNT(*) AS n, SUM(x) AS s FROM l GROUP BY k, TUMBLE(t, {FIVE})",
        f"SELECT k, {tumble('t')} AS w, COUNT(*) AS n, SUM(x) AS s FROM l GROUP BY k, {tumble('t')}",
    ),
    "GROUP BY HOP": (
        f"SELECT {HOP.format('l')} AS w, COUNT(x) AS n FROM l GROUP BY {HOP.format('l')} HAVING COUNT(*) > 1",
        f"SELECT w, COUNT(x) AS n FROM {hopped('l', ('k', 'x'), 5, 12)} GROUP BY w HAVING COUNT(*) > 1",
    ),
    **{
        f"{kind} JOIN on TUMBLE": (
            f"SELECT l.x, r.y, COALESCE(TUMBLE(l.t, {FIVE}), TUMBLE(r.t, {FIVE})) AS w FROM l {kind} JOIN r "
            f"ON l.k = r.k AND TUMBLE(l.t, {FIVE}) = TUMBLE(r.t, {FIVE})",
            f"SELECT l.x, r.y, COALESCE({tumble('l.t')}, {tumble('r.t')}) AS w FROM l {kind} JOIN r "
            f"ON l.k = r.k AND {tumble('l.t')} = {tumble('r.t')}",
        )
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    **{
        f"{kind} JOIN on TUMBLE": (
            f"SELECT l.x, TUMBLE(l.t, {FIVE}) AS w FROM l {kind} JOIN r "
            f"ON l.k = r.k AND TUMBLE(l.t, {FIVE}) = TUMBLE(r.t, {FIVE})",
            f"SELECT l.x, {tumble('l.t')} AS w FROM l {kind} JOIN r ON l.k = r.k AND {tumble('l.t')} = {tumble('r.t')}",
        )
        for kind in ("SEMI", "ANTI")
    },
    "USING (window)": (
        f"SELECT k, w, x, y FROM (SELECT k, x, TUMBLE(t, {FIVE}) AS w FROM l) a FULL JOIN "
        f"(SELECT k, y, TUMBLE(t, {FIVE}) AS w FROM r) b USING (k, w)",
        f"SELECT k, w, x, y FROM (SELECT k, x, {tumble('t')} AS w FROM l) a FULL JOIN "
        f"(SELECT k, y, {tumble('t')} AS w FROM r) b USING (k, w)",
    ),
    "windows that may both be NULL": (
        f"SELECT x, y FROM (SELECT x, TUMBLE(t, {FIVE}) AS w FROM l) a "
        f"JOIN (SELECT y, TUMBLE(t, {FIVE}) AS w FROM r) b ON a.w <=> b.w",
        f"SELECT x, y FROM (SELECT x, {tumble('t')} AS w FROM l) a JOIN (SELECT y, {tumble('t')} AS w FROM r) b "
        "ON a.w IS NOT DISTINCT FROM b.w",
    ),
    "windows of different lengths": (
        f"SELECT l.x, m.z FROM l JOIN m ON TUMBLE(l.t, {FIVE}) = TUMBLE(m.t, INTERVAL 10 MINUTES)",
        "SELECT l.x, m.z FROM l JOIN m ON FALSE",
    ),
    **{
        f"{kind} JOIN on HOP": (
            f"SELECT l.x, r.y, {HOP.format('l')} AS w FROM l {kind} JOIN r "
            f"ON l.k = r.k AND {HOP.format('l')} = {HOP.format('r')}",
            f"SELECT x, y, a.w AS w FROM {hopped('l', ('k', 'x'), 5, 12)} a {kind} JOIN "
            f"{hopped('r', ('k', 'y'), 5, 12)} b ON a.k = b.k AND a.w = b.w",
        )
        for kind in ("INNER", "LEFT", "FULL")
    },
    "grouped windows joined": (
        f"SELECT k, w, n, o FROM (SELECT k, TUMBLE(t, {FIVE}) AS w, COUNT(*) AS n FROM l GROUP BY 1, 2) a FULL JOIN "
        f"(SELECT k, TUMBLE(t, {FIVE}) AS w, COUNT(*) AS o FROM r GROUP BY 1, 2) b USING (k, w)",
        f"SELECT k, w, n, o FROM (SELECT k, {tumble('t')} AS w, COUNT(*) AS n FROM l GROUP BY 1, 2) a FULL JOIN "
        f"(SELECT k, {tumble('t')} AS w, COUNT(*) AS o FROM r GROUP BY 1, 2) b USING (k, w)",
    ),
    "TUMBLE of integers": (
        "SELECT k, TUMBLE(i, 10) AS w, WINDOW_END(TUMBLE(i, 10)) AS e FROM r",
        f"SELECT k, w, w.end AS e FROM (SELECT k, {counted('i')} AS w FROM r)",
    ),
    "TUMBLE of integers in FROM": (
        "SELECT k, i, window_start, window_end FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(i), 10))",
        f"SELECT k, i, w.start AS window_start, w.end AS window_end FROM (SELECT k, i, {counted('i')} AS w FROM l)",
    ),
    "GROUP BY HOP of integers": (
        "SELECT k, HOP(i, 5, 10) AS w, COUNT(*) AS n FROM r GROUP BY k, HOP(i, 5, 10)",
        f"SELECT k, w, COUNT(*) AS n FROM (SELECT k, {counted('i', 5)} AS w FROM r "
        f"UNION ALL SELECT k, {counted('i', 5, 5)} FROM r WHERE {counted('i')} IS NOT NULL) GROUP BY k, w",
    ),
    **{
        f"{kind} JOIN on TUMBLE of integers": (
            f"SELECT l.x, r.y, COALESCE(TUMBLE(l.i, 10), TUMBLE(r.i, 10)) AS w FROM l {kind} JOIN r "
            "ON l.k = r.k AND TUMBLE(l.i, 10) = TUMBLE(r.i, 10)",
            f"SELECT l.x, r.y, COALESCE({counted('l.i')}, {counted('r.i')}) AS w FROM l {kind} JOIN r "
            f"ON l.k = r.k AND {counted('l.i')} = {counted('r.i')}",
        )
        for kind in ("INNER", "FULL")
    },
    "VALIDITY_WINDOW": (
        "SELECT k, MAX(y) AS v, VALIDITY_WINDOW(t) AS w FROM r GROUP BY k, VALIDITY_WINDOW(t)",
        f"SELECT k, v, w FROM {VALID_DUCKDB}",
    ),
    "VALIDITY_WINDOW of a table": (
        "SELECT z, t, COUNT(*) AS n, VALIDITY(t) AS w FROM m GROUP BY z, VALIDITY(t)",
        "SELECT z, w.start AS t, v AS n, w FROM "
        + versions("z", "c", "(SELECT z, t, COUNT(*) OVER (PARTITION BY z, t) AS c FROM m)"),
    ),
    "VALIDITY_WINDOW of all": (
        "SELECT MAX(y) AS v, VALIDITY_WINDOW(t) AS w FROM r GROUP BY VALIDITY_WINDOW(t) HAVING MAX(y) > 0",
        f"SELECT v, w FROM {versions('o', 'y', '(SELECT 1 AS o, y, t FROM r)')} WHERE v > 0",
    ),
    **{
        f"{kind} JOIN inside a validity window": (
            f"SELECT l.x, l.t, v.v, v.w FROM l {kind} JOIN {VALID} v ON {INSIDE}",
            f"SELECT l.x, l.t, v.v, v.w FROM l {kind} JOIN {VALID_DUCKDB} v ON {INSIDE_DUCKDB}",
        )
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    "without the window": (
        f"SELECT l.x, v.v FROM l JOIN {VALID} v ON {INSIDE}",
        f"SELECT l.x, v.v FROM l JOIN {VALID_DUCKDB} v ON {INSIDE_DUCKDB}",
    ),
}


@together(QUERIES)
@budget(1, deep=3)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_view_equals_the_query(written: list[Written], actions: tuple[Action, ...], parallelism: int) -> None:
    play_views(SPECS, written, actions, parallelism)
