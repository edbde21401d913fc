"""Two answers to one expression, Spark's and ours, row by row with errors, in a form that can be compared."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.arrow.columns import ERROR, replaced, single_chunk
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.kernels.duckdb.row_errors import filter_project_marked
from rejoinder.sql.functions.expression_compiler import compile_expression, output_name
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.types import spark_types
from tests.deep import IS_DEEP
from tests.spark.awkward_values import awkward_table
from tests.spark.random_values import random_table

FAILED = "FAILED"
_PER_QUERY = 40
_NUMBER = "row number"


@dataclass(frozen=True)
class Answer:
    """Name, type and values of an expression; `refused` is the message if it was refused before any row was read."""

    name: str | None = None
    type: str = ""
    values: tuple[object, ...] = ()
    refused: str = ""
    internal: str = ""


class TableScope:
    """All columns of one table, by their own names."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        """Find a column without a qualifier; `st.x` is for the binder to take apart."""
        if column.table or column.name not in self._schema.names:
            raise errors.UnknownName(f"no column `{column.sql()}`")
        return column.name, self._schema.field(column.name).type


def batch_session(spark: SparkSession) -> SparkSession:
    """A session of its own on a JVM, with the tables `awkward` and `random_values`."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.timeType.enabled", "true")
    # Shared between expressions, a part could fail for all that use it.
    session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    compile_less(session)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    register(session, "awkward", awkward_table())
    register(session, "random_values", random_table())
    return session


def compile_less(session: SparkSession) -> None:
    """Let Spark interpret expressions in `make test`: to compile each of them takes longer than to evaluate it once."""
    if not IS_DEEP:
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")


def register(session: SparkSession, name: str, table: pa.Table) -> None:
    """Make a table a view of a session."""
    schema = ", ".join(f"`{field.name}` {spark_types.spark_name(field.type)}" for field in table.schema)
    session.createDataFrame(table, schema=schema).createOrReplaceTempView(name)


def differences(spark: Answer, ours: Answer, *, ulps: int = 0) -> list[str]:
    """What differs between two answers; empty if nothing does. Numbers may differ by `ulps` in the last place."""
    if spark.refused or ours.refused:
        return [f"refused by Spark: {spark.refused or 'no'}, by us: {ours.refused or 'no'}"]
    found = []
    if ours.name != spark.name:
        found.append(f"named {ours.name}, by Spark {spark.name}")
    if ours.type != spark.type:
        found.append(f"type {ours.type}, by Spark {spark.type}")
    rows = [
        row for row, (one, two) in enumerate(zip(ours.values, spark.values, strict=True)) if not _agree(one, two, ulps)
    ]
    return found + [f"row {row}: {ours.values[row]}, by Spark {spark.values[row]}" for row in rows[:3]]


def _agree(ours: object, theirs: object, ulps: int) -> bool:
    if ours == theirs or not ulps or {"None", FAILED} & {ours, theirs}:
        return ours == theirs
    one, two = float(str(ours)), float(str(theirs))
    return abs(one - two) <= ulps * math.ulp(two)


def parsed(text: str) -> exp.Expr:
    """Parse an expression of the corpus."""
    node: exp.Expr = sqlglot.parse_one(f"SELECT {text}", read=SparkSql).expressions[0]
    return node


def our_answer(text: str, table: pa.Table) -> Answer:
    """Compile and evaluate, and row by row if a row fails."""
    node = parsed(text)
    scope = TableScope(table.schema)
    try:
        expression = compile_expression(node, scope)
    except errors.PlanningError as refusal:
        return Answer(refused=str(refusal))
    try:
        name = output_name(node, scope)
    except errors.Unsupported:
        name = None
    return Answer(
        name,
        spark_types.spark_name(expression.type),
        tuple(_evaluated(expression, table)),
        internal=duckdb_text(expression.node),
    )


def _evaluated(expression: Expression, table: pa.Table) -> list[object]:
    """Evaluate as views do: a row that fails is marked, and comes after the others."""
    numbered = replaced(table, _NUMBER, pa.array(range(table.num_rows)))
    result = filter_project_marked(numbered, None, [("value", expression)], keep=[_NUMBER])
    values = comparable(result.column("value"))
    if ERROR in result.column_names:
        failed = result.column(ERROR).is_valid().to_pylist()
        values = [FAILED if lost else value for value, lost in zip(values, failed, strict=True)]
    by_number = dict(zip(result.column(_NUMBER).to_pylist(), values, strict=True))
    return [by_number[number] for number in range(table.num_rows)]


def spark_answers(spark: SparkSession, view: str, texts: Sequence[str]) -> dict[str, Answer]:
    """Ask Spark, many expressions per query."""
    answers: dict[str, Answer] = {}
    different = list(dict.fromkeys(texts))
    for start in range(0, len(different), _PER_QUERY):
        known = _typed(spark, view, different[start : start + _PER_QUERY])
        answers |= known
        answers |= _evaluated_by_spark(spark, view, {text: one for text, one in known.items() if not one.refused})
    return answers


def _typed(spark: SparkSession, view: str, texts: Sequence[str]) -> dict[str, Answer]:
    """Ask for names and types, of all at once, or of each alone if one is refused."""
    try:
        fields = spark.sql(f"SELECT {', '.join(texts)} FROM {view}").schema.fields
    except PySparkException as refusal:
        if len(texts) == 1:
            return {texts[0]: Answer(refused=str(refusal).strip() or "refused")}
        return {text: answer for each in texts for text, answer in _typed(spark, view, [each]).items()}
    return {text: Answer(field.name, field.dataType.simpleString()) for text, field in zip(texts, fields, strict=True)}


def _evaluated_by_spark(spark: SparkSession, view: str, known: dict[str, Answer]) -> dict[str, Answer]:
    """Ask for arrays of one value: an array is NULL if the row fails, and contains NULL if the value is NULL."""
    # In quotes: after the keyword ARRAY Spark reads `>>` as the end of two types.
    columns = [_attempt(spark, f"`array`({text})").alias(f"v{at}") for at, text in enumerate(known)]
    if not columns:
        return {}
    result = spark.table(view).select(*columns).toArrow()
    answers = {}
    for index, (text, answer) in enumerate(known.items()):
        attempts = single_chunk(result.column(f"v{index}"))
        values = iter(comparable(attempts.flatten()))
        rows = tuple(FAILED if failed else next(values) for failed in attempts.is_null().to_pylist())
        answers[text] = replace(answer, values=rows)
    return answers


def _attempt(spark: SparkSession, text: str) -> Column:
    """Wrap an expression so that a row that fails gives NULL; Spark has no SQL for it."""
    jvm: Any = spark._jvm
    tools = jvm.org.apache.spark.sql.classic.ExpressionUtils
    wrapped: Any = F.expr(text)
    return Column(tools.column(jvm.org.apache.spark.sql.catalyst.expressions.TryEval(tools.expression(wrapped._jc))))


def comparable(values: pa.ChunkedArray | pa.Array) -> list[object]:
    """Give values that are equal exactly if the originals are: floats by their text, times by their numbers."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_string(kind):
        # Spark lets bytes that are not text through.
        return [
            "None" if value is None else repr(value.decode(errors="backslashreplace"))
            for value in values.cast("binary").to_pylist()
        ]
    return [repr(value) for value in values.to_pylist()]
