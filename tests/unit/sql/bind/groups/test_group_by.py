"""GROUP BY, HAVING and aggregates: names and types of the result, and errors that say what to write instead."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder.errors import InvalidSql, LimitReached, RejoinderError, TypeMismatch, UnknownName, Unsupported
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.types.spark_types import spark_name

SCHEMA = pa.schema(
    [
        ("k", pa.int32()),
        ("x", pa.int64()),
        ("p", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("a", pa.int32())])),
        ("d", pa.date32()),
    ]
)
CATALOG = Catalog((Source("t", "changelog", SCHEMA),))
WINDOWS = "(SELECT TUMBLE(CAST(d AS TIMESTAMP), INTERVAL 5 MINUTES) AS w FROM t) q"


def columns(query: str) -> dict[str, str]:
    return {field.name: spark_name(field.type) for field in bind(query, CATALOG).schema}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k, count(*) FROM t GROUP BY k", {"k": "int", "count(1)": "bigint"}),
        ("SELECT sum(x), SUM(p), avg(k), avg(p) FROM t", "bigint decimal(20,2) double decimal(14,6)"),
        ("SELECT t.k, sum(t.x) FROM t GROUP BY t.k", {"k": "int", "sum(x)": "bigint"}),
        ("SELECT count(DISTINCT k, s) FROM t", {"count(DISTINCT k, s)": "bigint"}),
        ("SELECT sum(x) FILTER (WHERE b) FROM t", {"sum(x) FILTER (WHERE b)": "bigint"}),
        ("SELECT sum(x) / count(*) + 1 AS v FROM t", {"v": "double"}),
        ("SELECT st.a, st, count(*) AS n FROM t GROUP BY st", {"a": "int", "st": "struct<a:int>", "n": "bigint"}),
        ("SELECT st.a, count(*) AS n FROM t GROUP BY st.a HAVING t.st.a > 1", {"a": "int", "n": "bigint"}),
        (f"SELECT w.start, w.end AS e FROM {WINDOWS} GROUP BY w", {"start": "timestamp", "e": "timestamp"}),
        (f"SELECT q.w.start, 1 AS x FROM {WINDOWS} GROUP BY w.start", {"start": "timestamp", "x": "int"}),
        ("SELECT K + 1 FROM t GROUP BY k + 1", {"(K + 1)": "int"}),
        ("SELECT sum(x) AS a, SUM(X) AS b, count_if(s = 'a') AS c, count_if(s = 'A') AS e FROM t", "bigint " * 4),
        ("SELECT k AS s, count(*) FROM t GROUP BY s, k", {"s": "int", "count(1)": "bigint"}),
    ],
)
def test_names_and_types(query: str, expected: dict[str, str] | str) -> None:
    found = columns(query)
    assert (list(found.values()) == expected.split()) if isinstance(expected, str) else (found == expected)


REFUSED: list[tuple[str, type[RejoinderError], str, str]] = [
    ("SELECT k, x FROM t GROUP BY k", InvalidSql, "column `x` is neither grouped nor aggregated", "ANY_VALUE(x)"),
    ("SELECT k, count(*) FROM t", InvalidSql, "column `k` is neither grouped nor aggregated", "GROUP BY"),
    ("SELECT * FROM t GROUP BY k", InvalidSql, "is neither grouped nor aggregated", "GROUP BY"),
    ("SELECT k FROM t GROUP BY k HAVING x > 1", InvalidSql, "column `x` is neither grouped nor aggregated", "MAX(x)"),
    ("SELECT k FROM t HAVING k > 1", InvalidSql, "HAVING without an aggregate or a GROUP BY", "WHERE"),
    ("SELECT sum(count(*)) FROM t", InvalidSql, "`COUNT(*)` is an aggregate inside an aggregate", "subquery"),
    ("SELECT k FROM t WHERE sum(x) > 1 GROUP BY k", Unsupported, "the aggregate `sum` is not supported here", "HAVING"),
    ("SELECT a.k FROM t a JOIN t b ON a.k = max(b.k)", Unsupported, "the aggregate `max` is not supported", "subquery"),
    ("SELECT count(*) FROM t GROUP BY sum(x)", InvalidSql, "GROUP BY cannot contain the aggregate", "subquery"),
    ("SELECT max(x) AS z FROM t GROUP BY z", InvalidSql, "the aggregate `MAX(x)`", "subquery"),
    ("SELECT k FROM t GROUP BY 2", InvalidSql, "GROUP BY 2: there are 1 columns", "positions start at 1"),
    ("SELECT count(*) FROM t GROUP BY kk", UnknownName, "there is no column `kk`", "`k`"),
    ("SELECT kk, count(*) FROM t GROUP BY k", UnknownName, "there is no column `kk`", "`k`"),
    ("SELECT count(*) FROM t GROUP BY m", TypeMismatch, "GROUP BY `m` of type map<string,int>", "CAST"),
    ("SELECT GROUPING(x) FROM t GROUP BY ROLLUP(k)", InvalidSql, "`x` is not grouped by", "k"),
    ("SELECT GROUPING(k) FROM t GROUP BY k", InvalidSql, "`GROUPING(k)` without ROLLUP", "ROLLUP"),
    ("SELECT GROUPING_ID(s, k) FROM t GROUP BY ROLLUP(k, s)", InvalidSql, "not all grouping expressions", "(k, s)"),
    ("SELECT GROUPING(k, s) FROM t GROUP BY CUBE(k, s)", InvalidSql, "takes one argument, not 2", "GROUPING_ID()"),
    ("SELECT 1 FROM t GROUP BY k GROUPING SETS ((k, s))", InvalidSql, "`s` in GROUPING SETS is not grouped", "before"),
    (f"SELECT 1 FROM t GROUP BY CUBE({', '.join(f'x + {n}' for n in range(13))})", LimitReached, "too many", "raise"),
    ("SELECT count(*) FROM t GROUP BY ROLLUP(VALIDITY(d))", Unsupported, "some of the grouping sets", "before"),
    ("SELECT count(*) FROM t GROUP BY (k, s)", Unsupported, "a list in GROUP BY is not supported", "parentheses"),
    ("SELECT sum(s) FROM t", TypeMismatch, "`sum` needs a number, not string", "CAST"),
    ("SELECT avg(d) FROM t", TypeMismatch, "`avg` needs a number, not date", "CAST"),
    ("SELECT min(st) FROM t", Unsupported, "`min` of struct<a:int> is not supported", "fields"),
    ("SELECT bool_and(k) FROM t", TypeMismatch, "`bool_and` needs a condition, not int", ""),
    ("SELECT min(x, 3) FROM t", InvalidSql, "`min` takes one argument, not 2", "min(x)"),
    ("SELECT count() FROM t", InvalidSql, "`count` takes one argument, not 0", "COUNT(*)"),
    ("SELECT every() FROM t", InvalidSql, "`bool_and` takes one argument, not 0", "bool_and(condition)"),
    (
        "SELECT k, sum(x) OVER (PARTITION BY k) AS s FROM t GROUP BY k",
        InvalidSql,
        "neither grouped nor aggregated",
        "x",
    ),
    ("SELECT count(DISTINCT *) FROM t", Unsupported, "is not supported", "COUNT(*)"),
    ("SELECT count(DISTINCT m) FROM t", TypeMismatch, "maps cannot be compared", ""),
    ("SELECT count(*) FILTER (WHERE k) FROM t", TypeMismatch, "a condition must be boolean, not int", "compare"),
    ("SELECT sum(x) FROM t HAVING sum(x)", TypeMismatch, "a condition must be boolean, not bigint", "compare"),
]


@pytest.mark.parametrize(("query", "kind", "fact", "hint"), REFUSED, ids=[query for query, *_ in REFUSED])
def test_what_is_refused_says_what_to_write(query: str, kind: type[RejoinderError], fact: str, hint: str) -> None:
    with pytest.raises(RejoinderError) as refusal:
        bind(query, CATALOG)
    assert type(refusal.value) is kind
    assert fact in refusal.value.fact
    assert refusal.value.detail
    assert hint in (refusal.value.hint or "")
