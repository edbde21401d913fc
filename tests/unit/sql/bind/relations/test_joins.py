"""Joins in SQL: every kind with its sides, conditions and columns, and the errors that teach."""

from __future__ import annotations

import pytest

from rejoinder.errors import AmbiguousName, InvalidSql, RejoinderError, TypeMismatch, UnknownName, Unsupported
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.sql.bind.bind_query import bind
from tests.unit.sql.trees import CATALOG, join, tree

ALL = "k x s t K z"


@pytest.mark.parametrize(
    ("words", "kind", "columns"),
    [
        ("JOIN", "inner(a, c", ALL),
        ("INNER JOIN", "inner(a, c", ALL),
        ("CROSS JOIN", "inner(a, c", ALL),
        ("LEFT JOIN", "left(a, c", ALL),
        ("LEFT OUTER JOIN", "left(a, c", ALL),
        ("RIGHT JOIN", "left(c, a", ALL),
        ("RIGHT OUTER JOIN", "left(c, a", ALL),
        ("FULL JOIN", "full(a, c", ALL),
        ("FULL OUTER JOIN", "full(a, c", ALL),
        ("SEMI JOIN", "semi(a, c", "k x s t"),
        ("LEFT SEMI JOIN", "semi(a, c", "k x s t"),
        ("RIGHT SEMI JOIN", "semi(c, a", "K z"),
        ("ANTI JOIN", "anti(a, c", "k x s t"),
        ("LEFT ANTI JOIN", "anti(a, c", "k x s t"),
        ("RIGHT ANTI JOIN", "anti(c, a", "K z"),
        ("FULL ANTI JOIN", "full anti(a, c", ALL),
    ],
)
def test_the_words_of_sql_give_kind_sides_and_columns(words: str, kind: str, columns: str) -> None:
    query = f"SELECT * FROM a {words} c ON a.k = c.k AND z > 1"
    assert tree(query) == f"{kind} | (a.k = c.K) & (c.z > CAST(1 AS INTEGER)))"
    assert bind(query, CATALOG).schema.names == columns.split()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a.x FROM a CROSS JOIN c", "inner(a, c | )"),
        ("SELECT a.x FROM a JOIN c ON TRUE", "inner(a, c | )"),
        ("SELECT a.x FROM a, c WHERE a.k < z", "inner(a, c | )[(a.k < c.z)]"),
        # Spark reads commas and joins from left to right; standard SQL would join first.
        ("SELECT a.x FROM a, c RIGHT JOIN g ON g.w = a.x", "left(g, inner(a, c | ) | (g.w = a.x))"),
        ("SELECT a.x FROM a LEFT JOIN c ON TRUE", "left(a, c | )"),
        (
            "SELECT a.x FROM a JOIN c ON a.k = c.k LEFT JOIN g ON g.w = c.z",
            "left(inner(a, c | (a.k = c.K)), g | (g.w = c.z))",
        ),
        (
            "SELECT a.x FROM a LEFT JOIN (c FULL JOIN g ON g.w = c.z) ON a.k = c.k",
            "left(a, full(c, g | (g.w = c.z)) | (a.k = c.K))",
        ),
        (
            "SELECT a.x FROM a LEFT JOIN c JOIN g ON g.w = c.z ON a.k = c.k",
            "left(a, inner(c, g | (g.w = c.z)) | (a.k = c.K))",
        ),
        (
            "SELECT a.x FROM a ANTI JOIN c ON a.k = c.k SEMI JOIN g ON a.x = g.w",
            "semi(anti(a, c | (a.k = c.K)), g | (a.x = g.w))",
        ),
        ("SELECT a.x FROM a LEFT JOIN c ON a.k = c.k WHERE z IS NULL", "left(a, c | (a.k = c.K))[(c.z IS NULL)]"),
    ],
)
def test_joins_nest_as_they_are_written(query: str, expected: str) -> None:
    assert tree(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM a JOIN b USING (k)", "k:int32 x s t y u"),
        ("SELECT * FROM a LEFT JOIN b USING (k)", "k:int32 x s t y u"),
        ("SELECT * FROM a RIGHT JOIN b USING (k)", "k:int64 x s t y u"),
        ("SELECT * FROM a FULL JOIN b USING (k)", "k:int64 x s t y u"),
        ("SELECT * FROM a FULL ANTI JOIN b USING (k)", "k:int64 x s t y u"),
        ("SELECT * FROM a CROSS JOIN b USING (k)", "k:int32 x s t y u"),
        ("SELECT * FROM b SEMI JOIN a USING (k)", "k:int64 y u"),
        ("SELECT * FROM a RIGHT ANTI JOIN b USING (k)", "k:int64 y u"),
        ("SELECT * FROM b FULL JOIN a USING (K)", "k:int64 y u x s t"),
        ("SELECT b.* FROM a JOIN b USING (k)", "k:int64 y u"),
        ("SELECT b.* FROM a LEFT JOIN b USING (k)", "k:int64 y u"),
        ("SELECT a.* FROM a RIGHT JOIN b USING (k)", "k:int32 x s t"),
        ("SELECT k, a.k AS ak, b.k AS bk FROM a FULL JOIN b USING (k)", "k:int64 ak:int32 bk:int64"),
        ("SELECT k FROM a FULL JOIN b USING (k) FULL JOIN c USING (k)", "k:int64"),
        ("SELECT * FROM a NATURAL JOIN c", "k:int32 x s t z"),
        ("SELECT * FROM a NATURAL LEFT OUTER JOIN b", "k:int32 x s t y u"),
        ("SELECT * FROM a NATURAL RIGHT JOIN b", "k:int64 x s t y u"),
        ("SELECT * FROM a NATURAL FULL JOIN b", "k:int64 x s t y u"),
        ("SELECT * FROM c NATURAL JOIN g", "K:int32 z w"),
    ],
)
def test_using_and_natural_show_the_columns_that_spark_shows(query: str, expected: str) -> None:
    schema = bind(query, CATALOG).schema
    typed = [f"{field.name}:{field.type}" for field in schema]
    wanted = expected.split()
    assert [t if ":" in w else t.split(":")[0] for t, w in zip(typed, wanted, strict=True)] == wanted


def test_the_column_of_using_is_the_side_that_is_never_missing() -> None:
    shown = {words: bind(f"SELECT k FROM a {words} JOIN b USING (k)", CATALOG) for words in ("LEFT", "RIGHT", "FULL")}
    assert [duckdb_text(shown[words].outputs[0][1].node) for words in shown] == ['"0.k"', '"1.k"', '"2.k"']
    project = shown["FULL"].root
    outputs = dict(project.outputs)  # type: ignore[union-attr]
    assert duckdb_text(outputs["2.k"].node) == 'COALESCE("0.k", "1.k")'
    assert {"0.k", "0.x", "1.k", "1.y"} <= outputs.keys()


def test_an_equality_of_two_sides_is_a_key() -> None:
    plain, safe, one_sided = join("SELECT a.k FROM a JOIN b ON a.k = b.k AND a.x <=> b.k AND b.k = 3").predicates
    assert plain.equality is not None and [duckdb_text(side.node) for side in plain.equality] == ['"0.k"', '"1.k"']
    assert safe.equality is not None and [duckdb_text(side.node) for side in safe.equality] == ['"0.x"', '"1.k"']
    assert (plain.null_safe, safe.null_safe) == (False, True)
    assert one_sided.equality is None


def test_a_null_safe_comparison_of_types_that_do_not_hash_alike_is_a_residual() -> None:
    (predicate,) = join("SELECT a.k FROM a JOIN b ON a.s <=> b.k").predicates
    assert predicate.equality is None and not predicate.null_safe


@pytest.mark.parametrize(
    ("condition", "lesser", "greater", "strict"),
    [
        ("a.t < b.u", "0.t", "1.u", True),
        ("a.t <= b.u", "0.t", "1.u", False),
        ("a.t > b.u", "1.u", "0.t", True),
        ("b.u >= a.t", "0.t", "1.u", False),
        ("a.x < b.k", "0.x", "1.k", True),
    ],
)
def test_an_order_of_two_sides_is_a_range(condition: str, lesser: str, greater: str, strict: bool) -> None:
    (predicate,) = join(f"SELECT a.k FROM a LEFT JOIN b ON {condition}").predicates
    assert predicate.order is not None
    assert [side.columns for side in predicate.order] == [(lesser,), (greater,)]
    assert predicate.order[0].type == predicate.order[1].type
    assert predicate.strict is strict


def test_between_is_two_ranges() -> None:
    low, high = join("SELECT a.k FROM a JOIN b ON b.u BETWEEN a.t AND a.t + INTERVAL 1 HOUR").predicates
    assert low.order is not None and [duckdb_text(side.node) for side in low.order] == ['"0.t"', '"1.u"']
    assert high.order is not None and duckdb_text(high.order[0].node) == '"1.u"' and high.order[1].columns == ("0.t",)
    assert (low.strict, high.strict) == (False, False)
    assert (low.expression.text, high.expression.text) == ("b.u >= a.t", "b.u <= a.t + INTERVAL '1' HOUR")


@pytest.mark.parametrize("condition", ["a.s < a.s", "a.s < CAST(b.k AS STRING)", "a.x < 3", "a.x < a.k", "a.x <> b.k"])
def test_other_comparisons_are_no_ranges(condition: str) -> None:
    (predicate,) = join(f"SELECT a.k FROM a JOIN b ON {condition}").predicates
    assert predicate.order is None and not predicate.strict


REFUSED: list[tuple[str, type[RejoinderError], str]] = [
    ("SELECT b.k FROM a SEMI JOIN b ON a.k = b.k", UnknownName, "there is no column `b.k`"),
    ("SELECT a.k FROM a RIGHT SEMI JOIN b ON a.k = b.k", UnknownName, "there is no column `a.k`"),
    ("SELECT a.k FROM a JOIN b USING (nope)", UnknownName, "there is no column `nope` on the left side of USING"),
    ("SELECT a.k FROM a LEFT JOIN b USING (x)", UnknownName, "there is no column `x` on the right side of USING"),
    ("SELECT a.k FROM a LEFT JOIN b USING (k, K)", InvalidSql, "column `K` appears twice in USING"),
    ("SELECT a.k FROM a JOIN c ON a.k = c.k JOIN b USING (k)", AmbiguousName, "column `k` is ambiguous"),
    ("SELECT k FROM a LEFT JOIN b ON a.k = b.k", AmbiguousName, "column `k` is ambiguous"),
    ("SELECT a.k FROM a FULL JOIN (SELECT s AS k FROM a) q USING (k)", TypeMismatch, ""),
    ("SELECT a.k FROM a LEFT JOIN b ON a.k", TypeMismatch, "a condition must be boolean, not int"),
    ("SELECT a.k FROM a LEFT JOIN b ON SUM(a.k) = b.k", Unsupported, "the aggregate `sum` is not supported here"),
    ("SELECT a.k FROM a FULL SEMI JOIN b ON a.k = b.k", Unsupported, "FULL SEMI JOIN is not supported"),
    ("SELECT a.k FROM a LEFT INNER JOIN b ON a.k = b.k", Unsupported, "LEFT INNER JOIN is not supported"),
    ("SELECT a.k FROM a NATURAL SEMI JOIN b", Unsupported, "NATURAL SEMI JOIN is not supported"),
    ("SELECT a.k FROM a NATURAL CROSS JOIN b", Unsupported, "NATURAL CROSS JOIN is not supported"),
    ("SELECT a.k FROM a NATURAL JOIN b ON a.k = b.k", InvalidSql, "NATURAL JOIN takes no condition"),
    ("SELECT a.k FROM a LEFT JOIN b a ON a.k = a.k", AmbiguousName, "column `k` is ambiguous"),
]


@pytest.mark.parametrize(("query", "error", "fact"), REFUSED, ids=[query for query, _, _ in REFUSED])
def test_what_is_not_supported_is_refused_with_detail_and_hint(
    query: str, error: type[RejoinderError], fact: str
) -> None:
    with pytest.raises(error) as raised:
        bind(query, CATALOG)
    assert type(raised.value) is error
    assert fact in raised.value.fact
    assert raised.value.detail and raised.value.hint


@pytest.mark.parametrize(
    ("query", "side"),
    [
        ("SELECT a.k, b.y FROM a SEMI JOIN b ON a.k = b.k", "b"),
        ("SELECT a.k, y FROM a ANTI JOIN b USING (k)", "b"),
        ("SELECT b.* FROM a SEMI JOIN b ON a.k = b.k", "b"),
        ("SELECT b.k FROM a RIGHT ANTI JOIN b ON a.k = b.k WHERE a.x = 1", "a"),
        ("SELECT a.k FROM a SEMI JOIN b ON a.k = b.k JOIN c ON c.z = b.y", "b"),
    ],
)
def test_a_hint_names_the_view_that_leaves_a_column_out(query: str, side: str) -> None:
    with pytest.raises(UnknownName) as raised:
        bind(query, CATALOG)
    assert f"SEMI and ANTI JOIN leave the columns of `{side}` out" in (raised.value.hint or "")


def test_other_missing_columns_have_another_hint() -> None:
    with pytest.raises(UnknownName, match="use one of these"):
        bind("SELECT q.kx FROM a SEMI JOIN b ON a.k = b.k JOIN c q ON a.k = q.k", CATALOG)
