"""Compiling expressions: types, texts, refusals and names. Values are compared with Spark in `tests/spark`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import Dialect, exp

from rejoinder import errors
from rejoinder.ir.expressions.comparisons import Comparison
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import Let
from rejoinder.kernels.duckdb.evaluate import project, select_rows
from rejoinder.kernels.duckdb.render import duckdb_text, render
from rejoinder.kernels.duckdb.staged_run import run_nodes
from rejoinder.sql.functions.expression_compiler import compile_expression, output_name
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.types import spark_types
from tests.spark.awkward_values import awkward_table
from tests.spark.corpus import EQUAL, LOUDER, REFUSED, WRONG

TABLE = awkward_table()


class AllColumns:
    """The columns of the table, by names without case."""

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        name = column.name.lower()
        if column.table or name not in TABLE.column_names:
            raise errors.UnknownName(f"there is no column `{column.sql()}`")
        return name, TABLE.schema.field(name).type


SCOPE = AllColumns()


def parse(text: str, dialect: str | type[Dialect] = SparkSql) -> exp.Expr:
    node: exp.Expr = sqlglot.parse_one(f"SELECT {text}", read=dialect).expressions[0]
    return node


def compiled(text: str) -> Expression:
    return compile_expression(parse(text), SCOPE)


def values(text: str, rows: int = 3) -> Sequence[object]:
    result: Sequence[object] = project(TABLE.slice(0, rows), [("v", compiled(text))]).column("v").to_pylist()
    return result


def _bare(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(kind):
        return pa.int64()
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


@pytest.mark.parametrize("topic", EQUAL)
def test_duckdb_agrees_on_the_types(topic: str) -> None:
    """The binder is not asked when compiling, so it can check what was compiled."""
    expressions = {text: compiled(text) for text in EQUAL[topic]}
    asked = {
        text: one
        for text, one in expressions.items()
        if not (pa.types.is_null(one.type) or spark_types.is_nested(one.type))
    }
    empty = pa.schema([(field.name, _bare(field.type)) for field in TABLE.schema]).empty_table()
    found = run_nodes(empty, [one.node for one in asked.values()]).schema.types
    differing = {
        text: (one.type, kind)
        for (text, one), kind in zip(asked.items(), found, strict=True)
        if _bare(one.type) != kind
    }
    assert differing == {}


@pytest.mark.parametrize("topic", EQUAL)
def test_the_columns_are_those_of_the_text(topic: str) -> None:
    for text in EQUAL[topic]:
        assert set(compiled(text).columns) == {node.parts[0].name for node in parse(text).find_all(exp.Column)}, text


@pytest.mark.parametrize("text", [*REFUSED, *WRONG])
def test_what_is_not_supported_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(errors.PlanningError) as refusal:
        compiled(text)
    assert refusal.value.detail or isinstance(refusal.value, errors.UnknownName | errors.InvalidSql)


def test_where_only_we_fail_is_compiled() -> None:
    assert all(render(compiled(text).node) for text in LOUDER)


class TestLiterals:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("1", "int"),
            ("2147483648", "bigint"),
            ("-2147483648", "int"),
            ("-9223372036854775808", "bigint"),
            ("9223372036854775808", "decimal(19,0)"),
            ("1.50", "decimal(3,2)"),
            (".5", "decimal(1,1)"),
            ("1e3", "double"),
            ("1L", "bigint"),
            ("1Y", "tinyint"),
            ("1.5BD", "decimal(2,1)"),
            ("1.5F", "float"),
            ("'a'", "string"),
            ("NULL", "void"),
            ("DATE '2020-01-01'", "date"),
            ("TIMESTAMP '2020-01-01'", "timestamp"),
            ("TIMESTAMP_NTZ '2020-01-01'", "timestamp_ntz"),
        ],
    )
    def test_types(self, text: str, kind: str) -> None:
        assert spark_types.spark_name(compiled(text).type) == kind

    def test_a_number_that_is_too_long(self) -> None:
        with pytest.raises(errors.Unsupported, match="39 digits"):
            compiled("1" * 39)

    def test_quotes_are_kept(self) -> None:
        assert values("'it''s \"here\"'", 1) == ['it\'s "here"']

    def test_strings_side_by_side_are_refused_since_sqlglot_reads_doubled_quotes_so(self) -> None:
        with pytest.raises(errors.Unsupported, match="side by side"):
            compile_expression(parse("'it''s'", "spark"), SCOPE)

    def test_a_literal_time_that_cannot_be_read(self) -> None:
        with pytest.raises(errors.InvalidSql, match="'2020-13-01' is not a date"):
            compiled("dt > '2020-13-01'")


class TestPredicates:
    @pytest.mark.parametrize(
        ("text", "comparisons"),
        [
            ("i > 5", [Comparison("i", "greater", 5)]),
            ("5 > i", [Comparison("i", "less", 5)]),
            ("l >= 5", [Comparison("l", "greater_equal", 5)]),
            ("s = 'x'", [Comparison("s", "equal", "x")]),
            ("i between 1 and 3", [Comparison("i", "greater_equal", 1), Comparison("i", "less_equal", 3)]),
            ("i is null", [Comparison("i", "is_null")]),
            ("i is not null and (s <> 'x')", [Comparison("i", "is_valid"), Comparison("s", "not_equal", "x")]),
        ],
    )
    def test_simple_ones_can_be_answered_by_arrow(self, text: str, comparisons: list[Comparison]) -> None:
        predicate = compiled(text)
        assert list(predicate.comparisons) == comparisons
        slow = Expression(Let("unused", predicate.node, predicate.node))
        names = ["i", "l", "s"]
        assert select_rows(TABLE.select(names), predicate).equals(select_rows(TABLE.select(names), slow))

    @pytest.mark.parametrize(
        "text",
        [
            "d > 1",  # NaN
            "i8 > 1000",  # wider than the column
            "i > 1.5",
            "i > '5'",
            "i + 1 > 5",
            "i > 5 or s = 'x'",
            "not i > 5",
            "i = null",
            "i > 5 and d > 1",
        ],
    )
    def test_others_cannot(self, text: str) -> None:
        assert compiled(text).comparisons == ()

    def test_a_side_that_may_fail_is_guarded(self) -> None:
        assert duckdb_text(compiled("j <> 0 and i / j > 1").node).startswith("CASE WHEN (NOT ")
        assert not duckdb_text(compiled("j <> 0 and i > 1").node).startswith("CASE")
        assert compiled("i / j > 1").can_fail
        assert not compiled("i > 1").can_fail

    def test_a_condition_is_boolean(self) -> None:
        with pytest.raises(errors.TypeMismatch, match="must be boolean"):
            compiled("case when i then 1 end")


class TestColumns:
    def test_a_bare_column_stays_bare(self) -> None:
        assert compiled("i").is_column
        assert compiled("(i)").is_column

    def test_names_are_quoted(self) -> None:
        class Odd:
            def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
                return 'odd "name" {0}', pa.int64()

        expression = compile_expression(parse("a + 1 - a"), Odd())
        table = pa.table({'odd "name" {0}': [5]})
        assert project(table, [("v", expression)]).to_pydict() == {"v": [1]}

    def test_what_the_scope_raises_comes_through(self) -> None:
        with pytest.raises(errors.UnknownName, match="no column `nosuch`"):
            compiled("i + nosuch")

    def test_fields_of_structs(self) -> None:
        assert compiled("st.x").type == pa.int32()
        assert compiled("st.X").type == pa.int32()
        with pytest.raises(errors.UnknownName) as refusal:
            compiled("st.z")
        assert "x, y" in str(refusal.value.detail)

    def test_a_unit_that_is_also_a_column(self) -> None:
        class WithMonth(AllColumns):
            def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
                return ("s", pa.string()) if column.name.lower() == "month" else super().resolve(column)

        with pytest.raises(errors.Unsupported, match="a column and a unit"):
            compile_expression(parse("date_trunc(month, ts)"), WithMonth())
        assert compile_expression(parse("date_trunc('week', ts)"), WithMonth()).type == spark_types.TIMESTAMP


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "fact", "hint"),
        [
            ("now()", "`now` is not supported here", "in WHERE, compare a time with it"),
            ("current_timestamp()", "`current_timestamp` is not supported here", "in WHERE, compare a time with it"),
            ("sum(i)", "aggregate `sum`", "GROUP BY"),
            ("row_number() over (order by i)", "a window function is not supported here", "QUALIFY"),
            ("(select 1)", "a subquery", "join it"),
            ("dt - dt", "an interval", "datediff"),
            ("make_dat(2020, 1, 1)", "the function `make_dat` is not supported", "did you mean `make_date(y, m, d)`"),
            ("explode(a)", "the function `explode` is not supported", "LATERAL VIEW"),
            ("cast(d as string)", "Java's", "DECIMAL"),
            ("s like p", "a literal pattern", "contains"),
        ],
    )
    def test_messages(self, text: str, fact: str, hint: str | None) -> None:
        with pytest.raises(errors.Unsupported) as refusal:
            compiled(text)
        assert fact in refusal.value.fact
        assert refusal.value.detail
        assert hint is None or hint in str(refusal.value.hint)

    def test_an_argument_that_is_not_known_is_refused(self) -> None:
        with pytest.raises(errors.Unsupported, match="this form"):
            compiled("locate('a', s, 2)")

    @pytest.mark.parametrize("pattern", ["a\\\\bc", "a\\\\"])
    def test_a_wrong_escape_in_like(self, pattern: str) -> None:
        with pytest.raises(errors.InvalidSql, match="escapes what needs no escape"):
            compiled(f"s like '{pattern}'")


class TestNames:
    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("i", "i"),
            ("i AS x", "x"),
            ("st.x", "x"),
            ("i + 1", "(i + 1)"),
            ("i <> 1", "(NOT (i = 1))"),
            ("i in (1, 2)", "(i IN (1, 2))"),
            ("i between 1 and 2", "between(i, 1, 2)"),
            ("case when b then 1 else i end", "CASE WHEN b THEN 1 ELSE i END"),
            ("cast(i as bigint)", "i"),
            ("cast(i as bigint) + 1", "(CAST(i AS BIGINT) + 1)"),
            ("cast((i) as bigint)", "i"),
            ("cast(st.x as string)", "CAST(st.x AS STRING)"),
            ("(st.x)", "x"),
            ("upper(s)", "upper(s)"),
            ("ifnull(i, 0)", "ifnull(i, 0)"),
            ("round(i)", "round(i, 0)"),
            ("sqrt(i)", "SQRT(i)"),
            ("mod(i, 2)", "mod(i, 2)"),
            ("int(i) * 2", "(i * 2)"),
            ("i is not null", "(i IS NOT NULL)"),
            ("not i is null", "(NOT (i IS NULL))"),
            ("b and b and b and b", "((b AND b) AND (b AND b))"),
            ("s not like 'a!_' escape '!'", "(NOT s LIKE a!_ ESCAPE '!')"),
            ("1L", "1"),
            ("-1.5D", "-1.5"),
            ("1::bigint", "CAST(1 AS BIGINT)"),
            ("st.x + 1", "(st.x + 1)"),
            ("dt + 1", "date_add(dt, 1)"),
            ("dt + interval 1 day", "date_add(dt, extractansiintervaldays(INTERVAL '1' DAY))"),
            ("ts - interval 90 minutes", "ts - INTERVAL '90' MINUTE"),
            ("extract(Day from ts)", "extract(Day FROM ts)"),
            ("position('a' in s)", "locate(a, s, 1)"),
            ("struct(i, s as t)", "struct(i, s AS t)"),
        ],
    )
    def test_as_spark_generates_them(self, text: str, name: str) -> None:
        assert output_name(parse(text), SCOPE) == name

    @pytest.mark.parametrize("text", ["i + t.missing"])
    def test_where_the_name_is_not_certain_an_alias_is_asked_for(self, text: str) -> None:
        with pytest.raises(errors.Unsupported) as refusal:
            output_name(parse(text), SCOPE)
        assert "AS name" in str(refusal.value.hint)

    def test_without_a_scope_a_sum_has_no_certain_name(self) -> None:
        assert output_name(parse("i * 2")) == "(i * 2)"
        with pytest.raises(errors.Unsupported):
            output_name(parse("i + 2"))


class TestDialect:
    def test_concatenation_goes_from_left_to_right(self) -> None:
        assert compiled("'1' || 2 + 3").type == pa.int64()

    def test_sqlglot_s_own_order_is_refused(self) -> None:
        with pytest.raises(errors.Unsupported, match="without parentheses"):
            compile_expression(parse("s || i + 3", "spark"), SCOPE)
