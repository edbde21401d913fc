"""Random queries with aggregates, in Spark's SQL and in DuckDB's, which names and types some of them differently.

Values are such that no sum overflows and no order of adding floats matters: that is for the unit tests of the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from tests.oracle.model import SourceSpec
from tests.oracle.queries import Draw
from tests.oracle.values import KINDS, Kind

Form: TypeAlias = "str | tuple[str, str]"
"""A call, or ours and DuckDB's."""
MODE = (
    "list_min(list_transform(list_filter(map_entries(histogram({0}){f}), "
    "lambda e: e.value = list_max(map_values(histogram({0}){f}))), lambda e: e.key))"
)
"""The smallest of the most frequent values; DuckDB's own `mode` takes the first."""
MIN_BY = "(list({0} ORDER BY {1}, {0} NULLS LAST) FILTER (WHERE {1} IS NOT NULL{and_f}))[1]"
"""With the smallest value among equals, and NULL where that is the value; DuckDB's own `min_by` ignores such rows."""

TOLERANCE = 1e-9
"""Of results that DuckDB rounds while it adds."""
_KIND = {kind.sql: kind for kind in KINDS}
SMALL = Kind("INT", "integer", (0, 1, 2, 3))
WIDE = Kind("BIGINT", "integer", (0, 1, -7, 2**40))
FLOAT = Kind("DOUBLE", "float", (0.0, -0.0, 1.5, -0.25, 1024.0, math.nan, math.inf, -math.inf))
TRUTH = _KIND["BOOLEAN"]
SPECS = (
    SourceSpec("a", "CHANGELOG", {"k": SMALL, "x": WIDE, "s": _KIND["STRING"], "f": FLOAT}),
    SourceSpec("b", "STREAM", {"k": SMALL, "y": SMALL, "p": _KIND["DECIMAL(10,2)"], "u": TRUTH}),
    SourceSpec("c", "TABLE", {"id": SMALL, "z": WIDE, "d": _KIND["DATE"], "t": _KIND["TIMESTAMP"]}, ("id",)),
)
CALLS: dict[str, tuple[Form, ...]] = {
    "integer": (
        "sum({0})",
        "avg({0})",
        "count(DISTINCT {0})",
        "sum(DISTINCT {0})",
        "min({0})",
        "sum({0} * 2) + 1",
        "regr_count({0}, {0})",
        "bit_and({0})",
        "bit_or({0})",
        "bit_xor({0})",
        "median({0})",
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY {0} DESC)",
        ("percentile_disc(0.6) WITHIN GROUP (ORDER BY {0})", "CAST(quantile_disc({0}, 0.6) AS DOUBLE)"),
        ("size(collect_set({0}))", "count(DISTINCT {0})"),
        "var_pop(DISTINCT CAST({0} % 4 AS DOUBLE))",
        "regr_sxx({0} % 4, {0} % 8)",
        "covar_pop({0} % 4, {0} % 8)",
        ("mode({0})", MODE),
    ),
    "decimal": ("sum({0})", "sum(DISTINCT {0})", "max({0})", "var_samp({0})"),
    "float": ("sum({0})", "min({0})", "max({0})", "count(DISTINCT {0})"),
    "truth": ("bool_and({0})", "bool_or({0})", ("count_if({0})", "count(*) FILTER (WHERE {0})"), "min({0})"),
}
ANY: tuple[Form, ...] = (
    "count({0})",
    "min({0})",
    "max({0})",
    ("any_value({0})", "min({0})"),
    "count({0}) FILTER (WHERE {1} IS NOT NULL)",
    ("min_by({0}, {1})", MIN_BY),
    ("max_by({0}, {1})", MIN_BY.replace("{1},", "{1} DESC,")),
    ("collect_list({0})", "coalesce(list({0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL), [])"),
)
"""COUNT_IF of no rows is 0 in Spark, NULL in DuckDB."""


@dataclass(frozen=True)
class Query:
    """A query in both tongues, with its columns."""

    ours: str
    duckdb: str
    columns: dict[str, Kind]


@dataclass(frozen=True)
class _Source:
    """What stands in FROM, and the columns it offers."""

    text: str
    columns: dict[str, Kind]


_A, _B, _C = ({f"{s.name}.{name}": kind for name, kind in s.columns.items()} for s in SPECS)
SOURCES = (
    _Source("a", _A),
    _Source("b", _B),
    _Source("c", _C),
    _Source("a JOIN b ON a.k = b.k", _A | _B),
    _Source("a JOIN c ON a.k = c.id JOIN b ON b.y = c.id", _A | _B | _C),
    _Source("a LEFT JOIN c ON a.k = c.id", _A | _C),
    _Source("b LEFT JOIN c ON b.k = c.id", _B | _C),
    _Source("(SELECT k, x AS v FROM a UNION ALL SELECT k, y FROM b) q", {"q.k": SMALL, "q.v": WIDE}),
    _Source("(SELECT DISTINCT k, y FROM b) q", {"q.k": SMALL, "q.y": SMALL}),
    _Source("(SELECT k, sum(x) AS v FROM a GROUP BY k) q", {"q.k": SMALL, "q.v": WIDE}),
    _Source("(SELECT count(*) AS n FROM a) q", {"q.n": WIDE}),
    _Source(
        "a JOIN (SELECT k, max(y) AS m FROM b GROUP BY k) q ON a.k = q.k AND a.k >= q.m",
        _A | {"q.m": SMALL},
    ),
    _Source("c LEFT JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) q ON c.id = q.k", _C | {"q.n": WIDE}),
)
FILTERS = ("", "", "", " WHERE {0} IS NOT NULL", " WHERE {0} IS NULL OR {1} IS NOT NULL", " WHERE 1 = 0")
HAVINGS = ("", "", "", " HAVING count(*) > 1", " HAVING min({0}) IS NOT NULL", " HAVING count(DISTINCT {0}) < 2")


@st.composite
def aggregate_queries(draw: Draw, sources: Sequence[_Source] = SOURCES) -> Query:
    """SELECT keys, aggregates FROM … [WHERE …] [GROUP BY …] [HAVING …]."""
    source = draw(st.sampled_from(sources))
    names = list(source.columns)

    def some() -> str:
        return draw(st.sampled_from(names))

    keys: list[str] = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    selected = [(f"{name} AS g{at}",) * 2 for at, name in enumerate(keys)]
    columns = {f"g{at}": source.columns[name] for at, name in enumerate(keys)}
    numbers: list[str] = [name for name in keys if source.columns[name].family == "integer"]
    adds_one: bool = draw(st.booleans())
    if numbers and adds_one:
        selected.append((f"{numbers[0]} + 1 AS g9",) * 2)
    for at in range(draw(st.integers(1, 3))):
        name = some()
        forms = (*CALLS.get(source.columns[name].family, ()), *ANY, "count(*)")
        other = some()
        form: Form = draw(st.sampled_from(forms))
        ours, theirs = (form, form) if isinstance(form, str) else form
        selected.append((f"{ours.format(name, other)} AS r{at}", f"{duckdb_form(theirs, name, other)} AS r{at}"))
    where = draw(st.sampled_from(FILTERS)).format(some(), some())
    having = draw(st.sampled_from(HAVINGS)).format(some())
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    words = "DISTINCT " if draw(st.integers(0, 9)) == 0 else ""
    rest = f" FROM {source.text}{where}{group}{having}"
    ours, theirs = (f"SELECT {words}{', '.join(listed)}{rest}" for listed in zip(*selected, strict=True))
    return Query(ours, theirs, columns)


def duckdb_form(form: str, *arguments: str, condition: str = "") -> str:
    """DuckDB's call with arguments; `{f}` and `{and_f}` are places for a FILTER."""
    f, and_f = (f" FILTER (WHERE {condition})", f" AND ({condition})") if condition else ("", "")
    return form.format(*arguments, f=f, and_f=and_f)
