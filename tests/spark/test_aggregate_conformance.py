"""Queries with aggregates, answered by batch Spark and by us: names, types and rows; and what both refuse."""

from __future__ import annotations

import logging
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from rejoinder import errors
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.types import spark_types
from rejoinder.testing import Driver
from tests.spark.conformance import compile_less

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        ("g", spark_types.INT),
        ("b", spark_types.BOOLEAN),
        ("i8", spark_types.TINYINT),
        ("i", spark_types.INT),
        ("l", spark_types.BIGINT),
        ("f", spark_types.FLOAT),
        ("d", spark_types.DOUBLE),
        ("p", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(30, 12)),
        ("most", pa.decimal128(38, 36)),
        ("s", spark_types.STRING),
        ("dt", spark_types.DATE),
        ("ts", spark_types.TIMESTAMP),
    ]
)
_DAY, _TIME = date(2024, 2, 29), datetime(2024, 2, 29, 12, 30)
ROWS: list[tuple[Any, ...]] = [
    (1, True, 127, 5, 10, 1.5, 2.5, "1.10", "1.5", "0.1", "a", _DAY, _TIME),
    (1, False, 127, -7, 2**53 + 1, -0.0, 0.25, "-2.25", "-7.000000000001", "0.333333", "b", date(1, 1, 1), None),
    (1, None, None, None, None, None, None, None, None, None, None, None, None),
    (2, True, 1, 2**31 - 1, 3, math.nan, 1e300, "0.01", "0.000000000001", "1.9", "", _DAY, datetime(1969, 12, 31)),
    (2, True, 1, 2**31 - 1, 4, math.inf, -1e300, "0.02", "0.000000000002", "1.9", "", _DAY, _TIME),
    (2, True, 2, 1, 4, -math.inf, 1.0, "0.02", "0.000000000002", "1.8", "c", _DAY, _TIME),
    (None, False, 0, 0, 0, 0.0, 0.0, "0.00", "0", "0", "", _DAY, _TIME),
    (None, False, 0, 0, -5, 16777217.0, 0.5, "99999999.99", "123456789012345678.5", "0.5", "", _DAY, _TIME),
    (3, None, None, None, None, None, None, None, None, None, None, None, None),
]

_FUNCTIONS = """
count(*); count(i); count(i, s); count(DISTINCT s); count(DISTINCT i, s); count(NULL); count('x'); COUNT(L)
sum(i8); sum(i); sum(i8 + 1); sum(f); sum(p); sum(wide); sum(DISTINCT i8); sum(DISTINCT p); sum(-i); SUM(p * 2)
avg(i8); avg(i); avg(l); avg(f); avg(p); avg(wide); avg(DISTINCT i); avg(DISTINCT p); mean(i); avg(p * p)
min(i8); min(l); min(f); min(d); min(p); min(s); min(dt); min(ts); min(b); min(DISTINCT i); min(i + l)
max(i8); max(l); max(f); max(d); max(p); max(s); max(dt); max(ts); max(b); max(DISTINCT i); max(i8 * 2)
regr_count(i, l); regr_count(p, d); regr_count(i8, f) FILTER (WHERE b); regr_count(i, i) + 1
regr_avgx(i, l); regr_avgy(p, i); regr_slope(i, l); regr_intercept(i8, l); regr_r2(l, i8); regr_sxx(p, i8)
regr_sxy(p, i8); regr_syy(p, i8); covar_pop(i8, l); covar_samp(p, l); covar_pop(d, f); var_pop(i); var_samp(i8)
variance(p); var_pop(d)
std(i); stddev(f); stddev_samp(i8); stddev_pop(p); variance(DISTINCT i8); covar_pop(DISTINCT i, l); skewness(i)
kurtosis(i); skewness(l); kurtosis(p); skewness(f); var_pop(i) FILTER (WHERE b)
regr_slope(i, l) FILTER (WHERE b); stddev(DISTINCT i)
bit_and(i8); bit_or(i); bit_xor(l); bit_and(i) FILTER (WHERE b); bit_xor(DISTINCT i8); bit_and(-i)
percentile(i, 0.3); percentile(d, 0.5); median(i8); median(p); percentile(DISTINCT i8, 0.5); median(l) FILTER (WHERE b)
percentile_cont(0.25) WITHIN GROUP (ORDER BY i DESC); percentile_disc(0.5) WITHIN GROUP (ORDER BY l); median(wide)
approx_percentile(i, 0.5); percentile_approx(l, 0.25); approx_count_distinct(s); any(b); min_by(i, l); min_by(s, i)
min_by(l, d); max_by(i8, i) FILTER (WHERE b); percentile_disc(1) WITHIN GROUP (ORDER BY p DESC); max_by(dt, l)
try_sum(i8); try_sum(p); try_sum(f); try_avg(i); try_avg(p); try_avg(l); try_sum(DISTINCT i)
hll_sketch_estimate(hll_sketch_agg(i)); hll_sketch_estimate(hll_sketch_agg(s, 14)); try_sum(l) FILTER (WHERE b)
theta_sketch_estimate(theta_sketch_agg(d)); theta_sketch_estimate(theta_sketch_agg(s)) + 1
kll_sketch_get_n_bigint(kll_sketch_agg_bigint(i)); kll_sketch_get_n_double(kll_sketch_agg_double(d))
kll_sketch_get_n_float(kll_sketch_agg_float(f)); kll_sketch_get_rank_bigint(kll_sketch_agg_bigint(coalesce(i, 1)), 1)
kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(coalesce(l, 7)), 0.5)
kll_sketch_get_quantile_double(kll_sketch_agg_double(coalesce(d, 1.5D), 400), 0.25)
kll_sketch_get_quantile_float(kll_sketch_agg_float(coalesce(f, 1.5F)), 0.9)
kll_sketch_get_rank_double(kll_sketch_agg_double(coalesce(d, 1.5D)), 1.5D)
kll_sketch_get_rank_float(kll_sketch_agg_float(coalesce(f, 1.5F)), 1.5F)
tuple_sketch_estimate_double(tuple_sketch_agg_double(s, d)); try_sum(l * 100)
tuple_sketch_estimate_integer(tuple_sketch_agg_integer(i, i8))
tuple_sketch_summary_integer(tuple_sketch_agg_integer(s, i8))
tuple_sketch_summary_double(tuple_sketch_agg_double(i8, f))
bitmap_count(bitmap_construct_agg(abs(i8))); hex(bitmap_or_agg(CAST(s AS BINARY))); hex(bitmap_and_agg(unhex(s)))
bool_and(b); bool_or(b); every(b); some(b); count_if(b); count_if(i > 0); bool_and(i > 0)
count(*) FILTER (WHERE i > 0); sum(p) FILTER (WHERE b); count(DISTINCT s) FILTER (WHERE i > 0); avg(i) FILTER (WHERE b)
sum(i) + 1; sum(i) / count(*); sum(p) / count(p); avg(p) + 1; max(l) - min(l); CAST(avg(i) AS INT); -sum(i)
CASE WHEN count(*) > 1 THEN sum(i) ELSE 0 END; max(i) > min(i); sum(i) IS NULL; sum(p) * 2 + avg(p); sum(i8) % 7
max(i) BETWEEN 1 AND 5; count(*) = 2; sum(l - 1); min(CASE WHEN b THEN i END); max(l) div 2; count(i8) IN (1, 2)
"""
FUNCTIONS = [text.strip() for text in _FUNCTIONS.replace("\n", ";").split(";") if text.strip()]
QUERIES = (
    "SELECT g, count(*) FROM r GROUP BY g",
    "SELECT count(*) FROM r WHERE i > 100000000000",
    "SELECT sum(i), min(s), avg(p), count(s), max(b) FROM r WHERE 1 = 0",
    "SELECT g FROM r GROUP BY g",
    "SELECT g + 1, count(*) FROM r GROUP BY g + 1",
    "SELECT g + 1, g + 2, count(*) FROM r GROUP BY g",
    "SELECT r.g, count(r.i) FROM r GROUP BY r.g",
    "SELECT g, s, count(*) FROM r GROUP BY 1, 2",
    "SELECT i % 2 AS odd, count(*) FROM r GROUP BY odd",
    "SELECT i % 2 AS g, count(*) FROM r GROUP BY g, i % 2",
    "SELECT g, b, max(i) FROM r GROUP BY ALL",
    "SELECT max(i) FROM r GROUP BY ALL",
    "SELECT g, sum(i) AS t FROM r GROUP BY g HAVING t > 0",
    "SELECT g, sum(i) AS i FROM r GROUP BY g HAVING i > 0",
    "SELECT g FROM r GROUP BY g HAVING count(*) > 1 AND max(s) IS NOT NULL",
    "SELECT max(i) FROM r HAVING count(*) > 100",
    "SELECT 1 AS one FROM r HAVING count(*) > 1",
    "SELECT DISTINCT count(*) FROM r GROUP BY g",
    "SELECT f, count(*) FROM r GROUP BY f",
    "SELECT count(1), COUNT(i8) FROM r",
    "SELECT upper(s) AS u, count(*) FROM r GROUP BY upper(s)",
    "SELECT count(*) FROM r GROUP BY g, b",
    "SELECT n, count(*) FROM (SELECT g, count(*) AS n FROM r GROUP BY g) GROUP BY n",
    "SELECT sum(a.i), count(DISTINCT b.s) FROM r a JOIN r b ON a.g = b.g",
    "SELECT a.g, max(b.i) FROM r a LEFT JOIN r b ON a.i = b.l GROUP BY a.g",
    "SELECT any_value(g) FROM r WHERE g = 1 GROUP BY g",
    "SELECT g, percentile(i, array(0.25, 0.5, 1)) AS q FROM r GROUP BY g",
    "SELECT g, sort_array(collect_list(i)) AS l, sort_array(collect_set(s)) AS t FROM r GROUP BY g",
    "SELECT g, listagg(s, '-') WITHIN GROUP (ORDER BY s) AS l, listagg(DISTINCT i8) WITHIN GROUP (ORDER BY i8) AS t "
    "FROM r GROUP BY g",
    "SELECT g, kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(coalesce(i, 1)), array(0, 0.5, 1)) AS q, "
    "kll_sketch_get_rank_bigint(kll_sketch_agg_bigint(coalesce(i, 1)), array(0, 5)) AS r FROM r GROUP BY g",
    "SELECT hex(bitmap_construct_agg(i8)) AS c, hex(bitmap_or_agg(unhex('01'))) AS o FROM r WHERE i8 < 0",
    "SELECT g, mode(i8, true) AS m, mode() WITHIN GROUP (ORDER BY i8 DESC) AS n FROM r GROUP BY g",
    "SELECT g, median(i) OVER (PARTITION BY g) AS m, stddev(i) OVER (PARTITION BY g) AS d FROM r",
)
WRONG = (
    "SELECT g, i FROM r GROUP BY g",
    "SELECT i, count(*) FROM r",
    "SELECT g FROM r WHERE count(*) > 1 GROUP BY g",
    "SELECT sum(count(*)) FROM r",
    "SELECT count(*) FROM r GROUP BY sum(i)",
    "SELECT g FROM r GROUP BY 2",
    "SELECT count(*) FROM r GROUP BY 1",
    "SELECT a.g FROM r a JOIN r b ON sum(a.i) = b.i",
    "SELECT sum(s, i) FROM r",
    "SELECT sum(b) FROM r",
    "SELECT sum(dt) FROM r",
    "SELECT bool_and(i) FROM r",
    "SELECT bit_and(d) FROM r",
    "SELECT corr(i) FROM r",
    "SELECT percentile(i, 1.5) FROM r",
    "SELECT percentile(i, l) FROM r",
    "SELECT median(b) FROM r",
    "SELECT percentile_cont(0.5) FROM r",
    "SELECT var_pop(dt) FROM r",
    "SELECT covar_pop(i, b) FROM r",
    "SELECT g FROM r GROUP BY g HAVING i > 1",
    "SELECT * FROM r GROUP BY g",
    "SELECT nowhere, count(*) FROM r GROUP BY nowhere",
    "SELECT max(i) AS m FROM r GROUP BY m",
    "SELECT g, b, count(*) FROM r GROUP BY (g, b)",
)


@pytest.fixture(scope="module")
def driver() -> Driver:
    """A flow with the rows."""
    made = Driver(parallelism=2)
    columns = ", ".join(f"{field.name} {spark_types.spark_name(field.type)}" for field in SCHEMA)
    made.sql(f"CREATE STREAM r ({columns})")
    made.insert("r", *(dict(zip(SCHEMA.names, map(_typed, SCHEMA.types, row), strict=True)) for row in ROWS))
    made.step()
    return made


def _typed(kind: pa.DataType, value: Any) -> Any:
    return Decimal(value) if value is not None and pa.types.is_decimal(kind) else value


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> SparkSession:
    """A session of its own on the shared JVM, with the rows."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    compile_less(session)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    by_column = zip(SCHEMA.types, zip(*ROWS, strict=True), strict=True)
    columns = [pa.array([_typed(kind, value) for value in values], kind) for kind, values in by_column]
    schema = ", ".join(f"{field.name} {spark_types.spark_name(field.type)}" for field in SCHEMA)
    session.createDataFrame(pa.table(columns, schema=SCHEMA), schema=schema).createOrReplaceTempView("r")
    return session


def _answers(batch: SparkSession, driver: Driver, query: str) -> list[tuple[list[str], list[str], list[list[str]]]]:
    """Names, types and sorted rows, by Spark and by us."""
    theirs = batch.sql(query)
    ours = bind(query, driver._engine.version.catalog).schema
    rows = [[_plain(value) for value in row] for row in theirs.collect()]
    own = [[_plain(value) for value in row.values()] for row in driver.sql(query)]
    return [
        (theirs.columns, [field.dataType.simpleString() for field in theirs.schema], sorted(rows)),
        (ours.names, [spark_types.spark_name(kind) for kind in ours.types], sorted(own)),
    ]


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value + 0.0)
    return repr(value)


def _differs(ours: str, theirs: str) -> bool:
    """Whether two values differ by more than Spark's rounding of intermediate results."""
    try:
        return ours != theirs and not math.isclose(float(ours), float(theirs), rel_tol=1e-12, abs_tol=1e-14)
    except ValueError:
        return True


@pytest.mark.parametrize("group", ["", " GROUP BY g"])
def test_functions_answer_as_spark_does(batch: SparkSession, driver: Driver, group: str) -> None:
    key = "'all' AS g" if not group else "coalesce(g, 0) AS g"
    theirs, ours = _answers(batch, driver, f"SELECT {key}, {', '.join(FUNCTIONS)} FROM r{group}")
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
    differences = [
        (name, mine, other)
        for own, their in zip(ours[2], theirs[2], strict=True)
        for name, mine, other in zip(ours[0], own, their, strict=True)
        if _differs(mine, other)
    ]
    assert differences == []


@pytest.mark.parametrize("query", QUERIES)
def test_queries_answer_as_spark_does(batch: SparkSession, driver: Driver, query: str) -> None:
    theirs, ours = _answers(batch, driver, query)
    assert ours == theirs


@pytest.mark.parametrize("query", WRONG)
def test_both_refuse_what_is_wrong(batch: SparkSession, driver: Driver, query: str) -> None:
    with pytest.raises(PySparkException):
        batch.sql(query).collect()
    with pytest.raises(errors.PlanningError):
        bind(query, driver._engine.version.catalog)


def test_a_tried_sum_that_overflows_is_null_and_comes_back(batch: SparkSession) -> None:
    query = "SELECT try_sum(x) AS s, try_avg(x) AS a FROM t"
    flow = Driver()
    flow.sql(f"CREATE CHANGELOG t (x BIGINT); CREATE VIEW v AS {query}")
    for change in ({"x": 2**62}, {"x": 2**62}):
        flow.insert("t", change)
        flow.step()
        inputs = ", ".join(f"({row['x']})" for row in flow.sql("SELECT x FROM t"))
        theirs = batch.sql(query.replace("FROM t", f"FROM VALUES {inputs} AS t(x)")).collect()
        assert [tuple(row.values()) for row in flow.table("v")] == [tuple(theirs[0])]
    flow.insert("t", {"x": -1})  # Spark's answer depends on the order of the rows then
    flow.step()
    assert flow.table("v")[0]["s"] == 2**63 - 1


def test_a_product_is_spark_s(batch: SparkSession, driver: Driver) -> None:
    """SQL has no `product` in Spark; its Python API has."""
    theirs = batch.table("r").groupBy("g").agg(functions.product("i8"), functions.product("p")).collect()
    ours = driver.sql("SELECT g, product(i8), product(p) FROM r GROUP BY g")
    expected = {row[0]: row[1:] for row in theirs}
    assert {row["g"] for row in ours} == expected.keys()
    for row in ours:
        key, *products = row.values()
        assert [None if x is None else pytest.approx(x, rel=1e-12) for x in expected[key]] == products


@pytest.mark.parametrize(("kind", "value"), [("BIGINT", 2**62), ("DECIMAL(38,0)", 6 * 10**37)])
def test_a_sum_that_overflows_fails(batch: SparkSession, kind: str, value: int) -> None:
    with pytest.raises(PySparkException, match=r"OVERFLOW|OUT_OF_RANGE"):
        batch.sql(f"SELECT sum(x) FROM (SELECT CAST({value} AS {kind}) AS x FROM range(2))").collect()
    flow = Driver()
    flow.sql(f"CREATE CHANGELOG t (g STRING, x {kind}); CREATE VIEW v AS SELECT g, sum(x) AS total FROM t GROUP BY g")
    flow.insert("t", {"g": "many", "x": value})
    flow.step()
    flow.insert("t", {"g": "many", "x": value})
    with pytest.raises(errors.EvaluationError, match=r"`sum\(x\)` overflows in view `v`\nDetail: a group"):
        flow.step()
    flow.insert("t", {"g": "many", "x": value}, {"g": "many", "x": -value})
    flow.step()
    assert flow.table("v") == [{"g": "many", "total": value}]
