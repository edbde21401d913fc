"""The binder: names resolved as Spark does, and everything that is not supported refused with fact, detail and hint."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder.errors import AmbiguousName, InvalidSql, RejoinderError, TypeMismatch, UnknownName, Unsupported
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.sql.bind.bind_query import bind
from rejoinder.testing import Driver


def source(name: str, **columns: pa.DataType) -> Source:
    return Source(name, "changelog", pa.schema(list(columns.items())))


CATALOG = Catalog(
    (
        source("a", k=pa.int32(), x=pa.int32(), s=pa.string(), b=pa.bool_()),
        source("b", k=pa.int64(), y=pa.float64(), d=pa.date32()),
        source("c", K=pa.int32(), m=pa.map_(pa.string(), pa.int32()), n=pa.struct([("i", pa.int32())])),
    )
)


def columns(query: str) -> dict[str, str]:
    return {field.name: str(field.type) for field in bind(query, CATALOG).schema}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM a JOIN b USING (k)", "k x s b y d"),
        ("SELECT * FROM b JOIN a USING (K)", "k y d x s b"),
        ("SELECT a.*, d FROM a JOIN b ON a.k = b.k", "k x s b d"),
        ("SELECT b.*, k FROM (SELECT y FROM b) b, a WHERE a.x = b.y", "y k"),
        ("SELECT A.K, X AS `Big X` FROM A", "K Big X"),
        ("SELECT q.z FROM (SELECT k AS z FROM a) q", "z"),
        ("SELECT m FROM (SELECT k, x FROM a) q(m, n)", "m"),
        ("WITH w AS (SELECT k FROM a) SELECT w.k, v.k AS vk FROM w JOIN w v ON w.k = v.k", "k vk"),
        ("SELECT l.k FROM a l JOIN a r ON l.k = r.k", "k"),
        ("SELECT k FROM a UNION ALL SELECT y FROM b", "k"),
    ],
)
def test_columns_have_the_names_that_spark_gives(query: str, expected: str) -> None:
    names = bind(query, CATALOG).schema.names
    assert names == ([*expected.split()] if "Big" not in expected else ["K", "Big X"])


def test_unions_have_the_common_type() -> None:
    assert columns("SELECT k FROM a UNION ALL SELECT k FROM b") == {"k": "int64"}
    assert columns("SELECT k FROM a UNION SELECT y FROM b") == {"k": "double"}
    assert columns("SELECT d FROM b UNION ALL SELECT CAST(NULL AS TIMESTAMP) FROM a") == {"d": "timestamp[us, tz=UTC]"}


REFUSED: list[tuple[str, type[RejoinderError], str]] = [
    ("SELECT kk FROM a", UnknownName, "there is no column `kk`"),
    ("SELECT a.kk FROM a", UnknownName, "there is no column `a.kk`"),
    ("SELECT q.k FROM a", UnknownName, "there is no column `q.k`"),
    ("SELECT q.* FROM a", UnknownName, "there is no relation `q` in this FROM"),
    ("SELECT a.k FROM a AS z", UnknownName, "there is no column `a.k`"),
    ("SELECT k FROM aa", UnknownName, "there is no relation `aa`"),
    ("SELECT k FROM a JOIN b ON a.k = b.k", AmbiguousName, "column `k` is ambiguous"),
    ("SELECT a.k FROM a JOIN b a ON a.k = a.k", AmbiguousName, "column `k` is ambiguous"),
    ("SELECT a.k FROM a JOIN b ON k = y", AmbiguousName, "column `k` is ambiguous"),
    ("SELECT a.k FROM a JOIN b ON a.s = b.k", TypeMismatch, "`a.s` and `b.k` cannot be equal: string against bigint"),
    ("SELECT a.k FROM a JOIN b ON a.b = b.k", TypeMismatch, "`boolean` and `bigint` have no common type"),
    ("SELECT a.k FROM a JOIN b ON a.k", TypeMismatch, "a condition must be boolean, not int"),
    ("SELECT k FROM a WHERE s", TypeMismatch, "a condition must be boolean, not string"),
    ("SELECT k FROM a UNION SELECT k, y FROM b", TypeMismatch, "UNION of 1 and 2 columns"),
    ("SELECT b FROM a UNION SELECT y FROM b", TypeMismatch, "`boolean` and `double` have no common type"),
    ("SELECT NULL AS n FROM a", TypeMismatch, "NULL has no type"),
    ("SELECT DISTINCT m FROM c", TypeMismatch, "DISTINCT on column `m` of type map<string,int>"),
    ("SELECT k FROM (SELECT k, x AS K FROM a) q", AmbiguousName, "column `k` is ambiguous"),
    ("SELECT NULL AS n FROM a UNION SELECT NULL FROM b", TypeMismatch, "NULL has no type"),
    ("SELECT * FROM a ORDER BY 99 LIMIT 1", InvalidSql, "ORDER BY 99: there is no such column"),
    ("SELECT k FROM (SELECT k FROM a) q(x, y)", InvalidSql, "2 column names for 1 columns"),
    ("SELECT k FROM a LIMIT k", InvalidSql, "LIMIT must be a constant whole number"),
    ("SELECT k FROM a ORDER BY 2 LIMIT 1", InvalidSql, "ORDER BY 2: there is no such column"),
    ("SELECT rank() OVER (PARTITION BY k) AS r FROM a", InvalidSql, "RANK needs an ORDER BY in its window"),
    ("SELECT sum(x) OVER w AS s FROM a", InvalidSql, "there is no window `w`"),
    ("SELECT k FROM a WHERE rank() OVER (ORDER BY k) = 1", Unsupported, "a window function is not supported here"),
    ("SELECT k FROM a GROUP BY k, rank() OVER (ORDER BY k)", Unsupported, "a window function is not supported here"),
    ("SELECT k FROM a QUALIFY k > 1", InvalidSql, "QUALIFY without a window function"),
    (
        "SELECT sum(x) OVER (ORDER BY k, x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM a",
        InvalidSql,
        "RANGE with a distance needs one column in ORDER BY, and there are 2",
    ),
    (
        "SELECT sum(x) OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS s FROM a",
        InvalidSql,
        "a frame ends before it starts",
    ),
    ("SELECT rank() OVER (ORDER BY k ROWS 1 PRECEDING) AS r FROM a", InvalidSql, "RANK takes no frame"),
    ("SELECT sum(x) OVER (RANGE UNBOUNDED PRECEDING) AS s FROM a", InvalidSql, "RANGE needs an ORDER BY"),
    (
        "SELECT sum(x) OVER (ORDER BY k ROWS 2147483648 PRECEDING) AS s FROM a",
        InvalidSql,
        "a distance in ROWS must be a constant whole number",
    ),
    (
        "SELECT ntile(0) OVER (ORDER BY k) AS r FROM a",
        InvalidSql,
        "NTILE takes a positive whole number that is written down",
    ),
    (
        "SELECT lag(x, k) OVER (ORDER BY k) AS r FROM a",
        InvalidSql,
        "the offset of LAG must be a whole number that is written down",
    ),
    (
        "SELECT count(DISTINCT x) OVER (PARTITION BY k) AS n FROM a",
        Unsupported,
        "DISTINCT is not supported in a window function",
    ),
    ("SELECT row_number() OVER (ORDER BY rand()) AS r FROM a", Unsupported, "`rand` is not supported in a view"),
    ("SELECT upper(s) OVER (ORDER BY k) AS r FROM a", Unsupported, "`UPPER(s)` is not a window function"),
    ("SELECT k FROM a UNION ALL BY NAME SELECT k FROM b", Unsupported, "BY NAME is not supported in a view"),
    ("SELECT k FROM a TABLESAMPLE (5 PERCENT)", Unsupported, "TABLESAMPLE is not supported in a view"),
    ("SELECT k FROM a VERSION AS OF 3", Unsupported, "AS OF is supported on the right side of a join only"),
    (
        "SELECT a.k FROM b JOIN a VERSION AS OF 3 ON a.k = b.k",
        Unsupported,
        "AS OF is supported on the right side of a join only",
    ),
    ("SELECT k FROM a LATERAL VIEW explode(s) t AS e", TypeMismatch, "`explode` takes an array or a map, not string"),
    ("SELECT k FROM a FOR UPDATE", Unsupported, "FOR UPDATE is not supported in a view"),
    ("SELECT k, x FROM a EXCEPT SELECT k FROM b", TypeMismatch, "EXCEPT of 2 and 1 columns"),
    ("SELECT k FROM a INTERSECT BY NAME SELECT k FROM b", Unsupported, "BY NAME is not supported in a view"),
    ("SELECT * FROM VALUES (1) t(a, b)", InvalidSql, "2 column names for 1 columns"),
    ("SELECT k FROM db.a", Unsupported, "`db.a` is not a plain name"),
    (
        "SELECT k FROM (a JOIN b ON a.k = b.k) z",
        Unsupported,
        "an alias for parentheses around relations, `z`, is not supported",
    ),
    ("SELECT DISTINCT ON (k) k FROM a", Unsupported, "DISTINCT ON is not supported"),
    (
        "WITH RECURSIVE w AS (SELECT k FROM a UNION ALL SELECT k FROM w) SELECT k FROM w",
        Unsupported,
        "`w` refers to itself",
    ),
    ("SELECT k, FROM a", InvalidSql, "something is missing after `,`"),
    ("SELECT k,, x FROM a", InvalidSql, "something is missing after `,`"),
    ("SELECT , k FROM a", InvalidSql, "something is missing after `SELECT`"),
    ("SELECT FROM a", InvalidSql, "something is missing after `SELECT`"),
    ("SELECT DISTINCT FROM a", InvalidSql, "something is missing after `DISTINCT`"),
    ("SELECT k FROM a, WHERE k = 1", InvalidSql, "something is missing after `,`"),
    ("SELECT k FROM a WHERE k IN (1, )", InvalidSql, "something is missing after `,`"),
    ("SELECT coalesce(, k) AS k FROM a", InvalidSql, "something is missing after `(`"),
    ("SELECT k FROM (SELECT k FROM a GROUP BY) q", InvalidSql, "something is missing after `GROUP BY`"),
    ("SELECT max(k) AS k FROM a GROUP BY HAVING max(k) > 1", InvalidSql, "something is missing after `GROUP BY`"),
    ("SELECT k FROM a GROUP BY k, EMIT CHANGES", InvalidSql, "something is missing after `,`"),
    ("SELECT date_trunc() AS d FROM a", InvalidSql, "a function has a wrong number of arguments"),
    ("SELECT map(k) AS m FROM a", TypeMismatch, "map takes keys and values in turn"),
    ("SELECT substring(s) AS s FROM a", Unsupported, "SUBSTRING has no start"),
    ("SELECT regexp_replace(s, s) AS s FROM a", TypeMismatch, "`regexp_replace` takes 3 arguments, not 2"),
]


def test_a_word_before_from_may_end_a_comparison() -> None:
    query = bind(
        "SELECT DISTINCT k FROM a WHERE k IS DISTINCT FROM (x + 1) AND extract(YEAR FROM DATE '2026-01-01') > x",
        CATALOG,
    )
    assert query.schema.names == ["k"]


@pytest.mark.parametrize(("query", "error", "fact"), REFUSED, ids=[query for query, _, _ in REFUSED])
def test_what_is_not_supported_is_refused_with_detail_and_hint(
    query: str, error: type[RejoinderError], fact: str
) -> None:
    with pytest.raises(error) as raised:
        bind(query, CATALOG)
    assert type(raised.value) is error
    assert raised.value.fact == fact
    assert raised.value.detail and raised.value.hint


def test_near_misses_are_named() -> None:
    with pytest.raises(UnknownName) as raised:
        bind("SELECT a.kx FROM a", CATALOG)
    assert "columns here: `k`, `x`, `s`, `b`" in (raised.value.detail or "")
    assert "did you mean" in (raised.value.hint or "")


def test_the_place_is_shown() -> None:
    with pytest.raises(UnknownName) as raised:
        bind("SELECT a.k\nFROM a\nWHERE nope > 1", CATALOG)
    assert "`nope > 1` (line 3)" in (raised.value.detail or "")
    with pytest.raises(InvalidSql) as unread:
        bind("SELECT k FRM a", CATALOG)
    assert "line 1" in (unread.value.detail or "") and ">>a<<" in (unread.value.detail or "")


def test_a_view_cannot_read_itself_and_hides_no_source() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG a (k INT)")
    with pytest.raises(UnknownName, match="there is no relation `v`"):
        driver.sql("CREATE VIEW v AS SELECT k FROM v")
