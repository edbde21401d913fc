"""Statistics, and aggregates of values in order, equal DuckDB's: grouped and global, with DISTINCT and FILTER."""

from __future__ import annotations

from hypothesis import given

from tests.deep import IS_DEEP
from tests.oracle.aggregates import MIN_BY, MODE, TOLERANCE, duckdb_form
from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.model import SourceSpec
from tests.oracle.scenario import Action
from tests.oracle.values import KINDS, Kind
from tests.oracle.written_views import Written, flows, play_views, together

_KIND = {kind.sql: kind for kind in KINDS}
SMALL = Kind("INT", "integer", (0, 1, 2, 3, -5))
SPECS = (
    SourceSpec(
        "a",
        "CHANGELOG",
        {
            "k": Kind("INT", "integer", (0, 1)),
            "x": SMALL,
            "y": Kind("BIGINT", "integer", (1, 2, 4, -8)),
            "f": Kind("DOUBLE", "float", (0.0, -0.0, 1.5, -0.25, 1024.0)),
            "p": _KIND["DECIMAL(10,2)"],
            "s": _KIND["STRING"],
        },
    ),
    SourceSpec("c", "TABLE", {"id": SMALL, "k": Kind("INT", "integer", (0, 1)), "x": SMALL, "y": SMALL}, ("id",)),
)
_SPREAD = "min({0}){f} < max({0}){f}"
STATISTICS = {
    **{f"{name}({{0}})": f"{name}({{0}}){{f}}" for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")},
    **{
        f"{name}({{0}}, {{1}})": f"{name}({{0}}, {{1}}){{f}}"
        for name in ("covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy")
    },
    "regr_sxy({0}, {1})": "regr_sxy({0}, {1}){f}",
    "corr({0}, {1})": "CASE WHEN NOT isnan(corr({0}, {1}){f}) THEN corr({0}, {1}){f} END",
    "regr_slope({0}, {1})": "CASE WHEN regr_sxx({0}, {1}){f} <> 0 THEN regr_slope({0}, {1}){f} END",
    "regr_intercept({0}, {1})": "CASE WHEN regr_sxx({0}, {1}){f} <> 0 THEN regr_intercept({0}, {1}){f} END",
    "regr_r2({0}, {1})": "CASE WHEN regr_sxx({0}, {1}){f} <> 0 THEN regr_r2({0}, {1}){f} END",
    "skewness({0})": f"CASE WHEN {_SPREAD} THEN (avg(CAST({{0}} AS DOUBLE) ** 3){{f}} - 3 * avg({{0}}){{f}} "
    "* avg(CAST({0} AS DOUBLE) ** 2){f} + 2 * avg({0}){f} ** 3) / var_pop({0}){f} ** 1.5 END",
    "kurtosis({0})": f"CASE WHEN {_SPREAD} THEN (avg(CAST({{0}} AS DOUBLE) ** 4){{f}} - 4 * avg({{0}}){{f}} "
    "* avg(CAST({0} AS DOUBLE) ** 3){f} + 6 * avg({0}){f} ** 2 * avg(CAST({0} AS DOUBLE) ** 2){f} "
    "- 3 * avg({0}){f} ** 4) / var_pop({0}){f} ** 2 - 3 END",
}
"""DuckDB's skewness and kurtosis are those of samples; its regressions over equal values are NaN, Spark's NULL."""
IN_ORDER = {
    "median({0})": "quantile_cont({0}, 0.5){f}",
    "percentile({0}, 0.3)": "quantile_cont({0}, 0.3){f}",
    "percentile({0}, array(0, 0.25, 1))": "quantile_cont(CAST({0} AS DOUBLE), [0, 0.25, 1]){f}",
    "percentile_cont(0.75) WITHIN GROUP (ORDER BY {0} DESC)": "quantile_cont({0}, 0.25){f}",
    "percentile_disc(0.6) WITHIN GROUP (ORDER BY {0})": "CAST(quantile_disc({0}, 0.6){f} AS DOUBLE)",
    "approx_percentile({0}, 0.5)": "quantile_disc({0}, 0.5){f}",
    "approx_count_distinct({0})": "count(DISTINCT {0}){f}",
    "mode({0})": MODE,
    "mode() WITHIN GROUP (ORDER BY {0} DESC)": MODE.replace("list_min", "list_max"),
    "min_by({0}, {1})": MIN_BY,
    "max_by({0}, {1})": MIN_BY.replace("{1},", "{1} DESC,"),
    "first({0})": "min({0}){f}",
    "last({0})": "max({0}){f}",
    "collect_list({0})": "coalesce(list({0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL{and_f}), [])",
    "collect_list({0} ORDER BY {1} DESC)": "coalesce(list({0} ORDER BY {1} DESC, {0}) "
    "FILTER (WHERE {0} IS NOT NULL{and_f}), [])",
    "collect_set({0})": "coalesce(list(DISTINCT {0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL{and_f}), [])",
    "listagg({0}, '-')": "array_to_string(list({0} ORDER BY CAST({0} AS VARCHAR)) "
    "FILTER (WHERE {0} IS NOT NULL{and_f}), '-')",
    "bit_and({0})": "bit_and({0}){f}",
    "bit_or({0})": "bit_or({0}){f}",
    "bit_xor({0})": "bit_xor({0}){f}",
}
DISTINCT = {
    "var_pop(DISTINCT {0})": "var_pop(DISTINCT {0}){f}",
    "stddev(DISTINCT {0})": "stddev(DISTINCT {0}){f}",
    "bit_xor(DISTINCT {0})": "bit_xor(DISTINCT {0}){f}",
    "percentile(DISTINCT {0}, 0.3)": "quantile_cont(DISTINCT {0}, 0.3){f}",
    "median(DISTINCT {0})": "quantile_cont(DISTINCT {0}, 0.5){f}",
    "collect_list(DISTINCT {0})": "coalesce(list(DISTINCT {0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL{and_f}), [])",
    "avg(DISTINCT {0})": "avg(DISTINCT {0}){f}",
}
ARGUMENTS = (("x", "y"), ("y", "x"))
FILTERED = "x IS NULL OR x <> 1"


def _written() -> dict[str, Written]:
    """A view for each few calls: in two ways in turn, and in all of them in `make test-deep`."""
    result: dict[str, Written] = {}
    ways: tuple[dict[str, tuple[str, str, str]], ...] = (
        {"by key": ("a", "k", ""), "of a table": ("c", "", FILTERED)},
        {"of all": ("a", "", ""), "filtered": ("a", "k", FILTERED)},
    )
    if IS_DEEP:
        ways = (ways[0] | ways[1],)
    forms = list((STATISTICS | IN_ORDER | DISTINCT).items())
    for start in range(0, len(forms), 4):
        calls = forms[start : start + 4]
        for way, (source, key, condition) in ways[start // 4 % len(ways)].items():
            arguments = ARGUMENTS[len(result) % 2]
            filter_ = f" FILTER (WHERE {condition})" if condition else ""
            ours = [f"{one.format(*arguments)}{filter_} AS r{at}" for at, (one, _) in enumerate(calls)]
            theirs = [
                f"{duckdb_form(other, *arguments, condition=condition)} AS r{at}" for at, (_, other) in enumerate(calls)
            ]
            keys, group = ([key], f" GROUP BY {key}") if key else ([], "")
            result[f"{calls[0][0]} {way}"] = (
                f"SELECT {', '.join(keys + ours)} FROM {source}{group}",
                f"SELECT {', '.join(keys + theirs)} FROM {source}{group}",
            )
    return result


QUERIES: dict[str, Written] = {
    **_written(),
    "doubles and decimals": (
        "SELECT k, var_pop(f) AS a, covar_pop(f, p) AS b, median(p) AS c, mode(f) AS d, collect_set(p) AS e FROM a "
        "GROUP BY k",
        f"SELECT k, var_pop(f) AS a, covar_pop(f, p) AS b, quantile_cont(CAST(p AS DOUBLE), 0.5) AS c, "
        f"{duckdb_form(MODE, 'f')} AS d, "
        "coalesce(list(DISTINCT p ORDER BY p) FILTER (WHERE p IS NOT NULL), []) AS e FROM a GROUP BY k",
    ),
    "texts": (
        "SELECT x, mode(s) AS a, min_by(s, y) AS b, max_by(y, s) AS c, listagg(DISTINCT s, ',') AS d FROM a GROUP BY x",
        f"SELECT x, {duckdb_form(MODE, 's')} AS a, {duckdb_form(MIN_BY, 's', 'y')} AS b, "
        f"{duckdb_form(MIN_BY.replace('{1},', '{1} DESC,'), 'y', 's')} AS c, "
        "string_agg(DISTINCT s, ',' ORDER BY s) AS d FROM a GROUP BY x",
    ),
    "of groups": (
        "SELECT median(n) AS m, stddev(n) AS d FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q",
        "SELECT median(n) AS m, stddev(n) AS d FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q",
    ),
}


@together(QUERIES)
@budget(1, deep=4)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_aggregates_equal_the_query(written: list[Written], actions: tuple[Action, ...], parallelism: int) -> None:
    play_views(SPECS, written, actions, parallelism, TOLERANCE)
