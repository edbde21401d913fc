"""Windows in SQL: what they are, how their ends are known, and which are refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from rejoinder.errors import InvalidSql, PlanningError, TypeMismatch, Unsupported
from rejoinder.ir import logical
from rejoinder.ir.catalog import Catalog
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.statements.statement_parser import CreateSource, parse_statements
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.testing import Driver

SOURCES = """
    CREATE STREAM l (k INT, t TIMESTAMP, n TIMESTAMP_NTZ, d DATE, s STRING);
    CREATE STREAM r (k INT, t TIMESTAMP, n TIMESTAMP_NTZ);
    CREATE STREAM p (w STRUCT<start: TIMESTAMP, end: TIMESTAMP>)
"""
FIVE = "INTERVAL '5' MINUTE"


def catalog() -> Catalog:
    found = Catalog()
    for statement in parse_statements(SOURCES):
        assert isinstance(statement, CreateSource)
        found = found.with_relation(statement.source)
    return found


def column_type(expression: str) -> str:
    return spark_name(bind(f"SELECT {expression} AS w FROM l", catalog()).schema.field("w").type)


def equalities(query: str) -> list[tuple[str, str]]:
    """The sides of the equalities of the first join of a query."""
    node: Any = bind(query, catalog()).root
    while not isinstance(node, logical.Join):
        node = node.input
    assert all(isinstance(p.expression, Expression) for p in node.predicates)
    return [
        (duckdb_text(p.equality[0].node), duckdb_text(p.equality[1].node))
        for p in node.predicates
        if p.equality is not None
    ]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (f"TUMBLE(t, {FIVE})", "struct<start:timestamp,end:timestamp>"),
        (f"tumble(n, {FIVE})", "struct<start:timestamp_ntz,end:timestamp_ntz>"),
        ("TUMBLE(d, INTERVAL 2 DAYS)", "struct<start:timestamp,end:timestamp>"),
        ("window(t, '5 minutes')", "struct<start:timestamp,end:timestamp>"),
        ("window(t, 'interval 1 hour 30 minutes')", "struct<start:timestamp,end:timestamp>"),
        (f"HOP(t, INTERVAL 1 MINUTE, {FIVE})", "struct<start:timestamp,end:timestamp>"),
        ("window(n, '5 minutes', '1 minute')", "struct<start:timestamp_ntz,end:timestamp_ntz>"),
        (f"WINDOW_START(TUMBLE(n, {FIVE}))", "timestamp_ntz"),
        (f"WINDOW_END(HOP(t, {FIVE}, {FIVE}))", "timestamp"),
        (f"CASE WHEN k = 1 THEN TUMBLE(t, {FIVE}) END", "struct<start:timestamp,end:timestamp>"),
        (f"TUMBLE(t, {FIVE}) = TUMBLE(d, {FIVE})", "boolean"),
    ],
)
def test_types(expression: str, kind: str) -> None:
    assert column_type(expression) == kind


def test_values_are_aligned_to_the_epoch_before_and_after_it() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (t TIMESTAMP)")
    for time in (datetime(2026, 1, 1, 12, 4, 59, 999999), datetime(1969, 12, 31, 23, 59), datetime(1970, 1, 1), None):
        driver.insert("s", {"t": time})
    driver.step()
    rows = driver.sql(f"SELECT t, TUMBLE(t, {FIVE}) AS w, WINDOW_END(TUMBLE(t, {FIVE})) AS e FROM s ORDER BY t")
    assert [row["w"] for row in rows] == [
        None,
        {"start": datetime(1969, 12, 31, 23, 55), "end": datetime(1970, 1, 1)},
        {"start": datetime(1970, 1, 1), "end": datetime(1970, 1, 1, 0, 5)},
        {"start": datetime(2026, 1, 1, 12), "end": datetime(2026, 1, 1, 12, 5)},
    ]
    assert [row["e"] for row in rows] == [row["w"] and row["w"]["end"] for row in rows]


def test_a_row_is_in_every_window_that_holds_it() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (t TIMESTAMP)")
    driver.insert("s", {"t": datetime(2026, 1, 1, 12, 5)}, {"t": None})
    driver.step()
    hops = driver.sql("SELECT HOP(t, INTERVAL 5 MINUTES, INTERVAL 12 MINUTES).start AS s FROM s ORDER BY s")
    assert [row["s"] and row["s"].minute for row in hops] == [None, 55, 0, 5]
    spark = driver.sql("SELECT window(t, '12 minutes', '5 minutes') FROM s")
    assert spark.columns == ["window"] and len(spark) == 3, "Spark's window leaves NULL out"
    assert len(driver.sql("SELECT window(t, '5 minutes') AS w, t FROM s")) == 1


def test_the_equality_of_windows_is_that_of_their_starts() -> None:
    start = 'make_timestamp(epoch_us("{0}") - (epoch_us("{0}") % 300000000 + 300000000) % 300000000)'
    on = f"TUMBLE(l.t, {FIVE}) = TUMBLE(r.t, {FIVE})"
    assert equalities(f"SELECT l.k FROM l JOIN r ON {on}") == [(start.format("0.t"), start.format("1.t"))]
    other = f"TUMBLE(l.t, {FIVE}) = TUMBLE(r.t, INTERVAL 1 HOUR)"
    assert len(equalities(f"SELECT l.k FROM l JOIN r ON {other}")) == 2, "of different lengths, the ends count too"


def test_a_window_of_a_subquery_is_joined_on_plain_columns() -> None:
    left = f"(SELECT k, TUMBLE(t, {FIVE}) AS w FROM l) a"
    right = f"(SELECT k, TUMBLE(t, {FIVE}) AS w FROM r) b"
    on = equalities(f"SELECT a.k FROM {left} JOIN {right} ON a.w = b.w")
    assert on == [('"1.w/start"', '"3.w/start"')]
    assert equalities(f"SELECT a.k FROM {left} JOIN {right} USING (w)") == on
    assert equalities(f"SELECT a.k FROM {left} JOIN {right} ON WINDOW_END(a.w) = b.w.end") == [
        ('"1.w/end"', '"3.w/end"')
    ]
    assert equalities(f"SELECT * FROM (SELECT * FROM {left}) c JOIN {right} ON c.w = b.w") == [
        ('"2.w/start"', '"4.w/start"')
    ]


def test_hops_of_a_condition_and_of_the_select_list_are_one() -> None:
    hop = "HOP({}.t, INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)"
    query = bind(
        f"SELECT {hop.format('l')} AS w FROM l JOIN r ON {hop.format('l')} = {hop.format('r')} WHERE l.k = 1", catalog()
    )
    found, todo = [], [query.root]
    while todo:
        node: Any = todo.pop()
        found += [node] if isinstance(node, logical.Expand) else []
        todo += [child for child in (getattr(node, name, None) for name in ("input", "left", "right")) if child]
    assert len(found) == 2


COUNTED = "the length of a window of integers must be an integer, and the same for all rows"


@pytest.mark.parametrize(
    ("expression", "error", "fact"),
    [
        ("TUMBLE(t, INTERVAL 0 MINUTES)", InvalidSql, "a window must be longer than nothing"),
        ("TUMBLE(t, INTERVAL '-5' MINUTE)", InvalidSql, "a window must be longer than nothing"),
        ("window(t, '0 seconds')", InvalidSql, "a window must be longer than nothing"),
        ("HOP(t, INTERVAL 0 MINUTES, INTERVAL 5 MINUTES)", InvalidSql, "a window must be longer than nothing"),
        ("TUMBLE(t, INTERVAL 1 MONTH)", Unsupported, "a window of months or years is not supported"),
        ("TUMBLE(t, k)", InvalidSql, "the length of a window must be an interval, and the same for all rows"),
        ("TUMBLE(t)", InvalidSql, "`TUMBLE` takes 2 or 3 arguments, not 1"),
        ("window(t, '5 minutes', '1 minute', '1 second', '1 s')", InvalidSql, "`window` takes 2 arguments, not 5"),
        ("TUMBLE(k, INTERVAL 1 DAY)", InvalidSql, COUNTED),
        ("TUMBLE(k, 2.5)", InvalidSql, COUNTED),
        ("HOP(k, 5, k)", InvalidSql, COUNTED),
        ("TUMBLE(k, 0)", InvalidSql, "a window must be longer than nothing"),
        ("HOP(k, -5, 10)", InvalidSql, "a window must be longer than nothing"),
        ("TUMBLE(k, 4611686018427387904)", InvalidSql, "a window must be shorter than 2^62"),
        ("TUMBLE(t, 10)", InvalidSql, "the length of a window must be an interval, and the same for all rows"),
        ("VALIDITY(k)", TypeMismatch, "a validity window is of a time on the clock, and `k` is an integer"),
        ("HOP(s, INTERVAL 1 DAY, INTERVAL 1 DAY)", TypeMismatch, "a window is of a time, and `s` is string"),
        ("WINDOW_START(t)", TypeMismatch, "timestamp is not a window"),
        ("VALIDITY_WINDOW(t)", InvalidSql, "`VALIDITY_WINDOW(t)` is not among the grouping expressions"),
    ],
)
def test_windows_that_are_refused(expression: str, error: type[PlanningError], fact: str) -> None:
    with pytest.raises(error) as raised:
        bind(f"SELECT {expression} AS w FROM l", catalog())
    assert raised.value.fact == fact and raised.value.hint


def test_a_slide_that_leaves_gaps_is_refused() -> None:
    for call in ("HOP(t, INTERVAL 10 MINUTES, INTERVAL 5 MINUTES)", "window(t, '5 minutes', '10 minutes')"):
        with pytest.raises(InvalidSql, match="would leave gaps") as raised:
            bind(f"SELECT {call} AS w FROM l", catalog())
        assert "a slide of" in str(raised.value.detail)
    with pytest.raises(InvalidSql, match="would leave gaps") as raised:
        bind("SELECT HOP(k, 10, 5) AS w FROM l", catalog())
    assert raised.value.detail == "a slide of 10 and a size of 5"


def test_two_validity_windows_in_one_group_by_are_refused() -> None:
    with pytest.raises(Unsupported, match="two validity windows"):
        bind("SELECT COUNT(*) AS n FROM l GROUP BY VALIDITY_WINDOW(t), VALIDITY_WINDOW(n)", catalog())


def test_a_struct_that_looks_like_a_window_is_one() -> None:
    query = bind(f"SELECT WINDOW_START(w) AS s, w = TUMBLE(w.end, {FIVE}) AS e FROM p", catalog())
    assert [spark_name(kind) for kind in query.schema.types] == ["timestamp", "boolean"]


def test_window_is_a_name_like_others() -> None:
    query = bind(f"SELECT window.start, a.window FROM (SELECT TUMBLE(t, {FIVE}) AS window FROM l) a", catalog())
    assert query.schema.names == ["start", "window"]
