"""Every entry of the registry is complete: it parses, compiles, has a template, and its example is true."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot
from pyspark.sql import functions
from sqlglot import exp

from rejoinder.errors import UnknownName, Unsupported
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.functions.function_templates import RENDERINGS
from rejoinder.sql.functions.aggregates.aggregate_function import AggregateFunction
from rejoinder.sql.functions.aggregates.aggregate_registry import AGGREGATES, aggregate_of
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.functions.function_list import markdown, score, score_text
from rejoinder.sql.functions.function_registry import BY_CLASS, BY_NAME, FAMILIES, FUNCTIONS, SIGNATURES
from rejoinder.sql.functions.refused_functions import REASONS, SPELLED, SPELLINGS, Spelling
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.functions.spark_names import SPARK_NAMES
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.testing import Driver

_WITHOUT_EXAMPLE = {"cumulate", "hop", "session", "session_window", "validity_window"}
"""Functions that are not a value of one row."""


class _NoColumns:
    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        raise UnknownName(f"an example has no columns: {column.sql()}")


@pytest.mark.parametrize("signature", SIGNATURES.values())
def test_every_signature_names_a_function_that_is_compiled(signature: str) -> None:
    node = sqlglot.parse_one(signature, read=SparkSql)
    is_scalar = node.name.lower() in BY_NAME if isinstance(node, exp.Anonymous) else type(node) in BY_CLASS
    assert is_scalar or aggregate_of(node) is not None


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_the_example_of_a_function_is_true(function: ScalarFunction) -> None:
    assert bool(function.example) != (function.name in _WITHOUT_EXAMPLE)
    if function.example:
        expression = compile_expression(sqlglot.parse_one(function.example, read=SparkSql), _NoColumns())
        assert project(pa.table({"row": [1]}), [("value", expression)]).column("value").to_pylist() == [True]


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda aggregate: aggregate.name)
def test_the_example_of_an_aggregate_is_true(aggregate: AggregateFunction) -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s (x INT); CREATE VIEW v AS SELECT {aggregate.example} AS value FROM s")
    driver.insert("s", {"x": 1}, {"x": 2}, {"x": None})
    driver.step()
    assert driver.table("v") == [{"value": True}]


def test_names_and_classes_belong_to_one_function() -> None:
    names = [name for aggregate in AGGREGATES for name in aggregate.signatures]
    names += [name for function in FUNCTIONS for name in function.signatures]
    classes = [node_class for function in FUNCTIONS for node_class in function.node_classes]
    assert len(names) == len(set(names)) and len(classes) == len(set(classes))
    assert sum(map(len, FAMILIES.values())) == len(FUNCTIONS) == len({function.name for function in FUNCTIONS})


def test_the_names_are_those_of_pyspark() -> None:
    assert set(functions.__all__) == SPARK_NAMES


def test_a_name_is_supported_or_refused_and_not_both() -> None:
    assert not REASONS.keys() & (SIGNATURES.keys() | SPELLED.keys())
    assert not SPELLED.keys() & SIGNATURES.keys()
    assert sum(map(len, score().values())) == len(SPARK_NAMES)
    assert f"{len(SPARK_NAMES)} names: {len(score()['supported'])} supported" in score_text()


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.names[0])
def test_the_other_spelling_of_a_name_is_planned(spelling: Spelling) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k STRING, n INT, xs ARRAY<INT>, ps ARRAY<STRUCT<a: INT>>)")
    driver.sql(f"CREATE VIEW v AS {spelling.example}")


@pytest.mark.parametrize("name", ["theta_union", "parse_json", "rand", "bucket"])
def test_a_refused_function_of_spark_is_answered_with_the_reason(name: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k STRING)")
    with pytest.raises(Unsupported) as failure:
        driver.sql(f"CREATE VIEW v AS SELECT {name}(k) AS x FROM s")
    assert failure.value.detail == f"in `{name.upper()}(k)`: {REASONS[name].reason}"
    assert failure.value.hint == REASONS[name].instead


def test_every_ordinary_function_has_a_template() -> None:
    assert {function.name for function in FUNCTIONS if function.form is None} <= RENDERINGS.keys()


def test_the_page_of_functions_is_generated() -> None:
    page = Path(__file__).parents[4] / "docs" / "functions.md"
    assert page.read_text(encoding="utf-8") == markdown(), "python -m rejoinder.sql.functions.function_list rewrites it"


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("lenght(k)", "length(text)"),
        ("substing(k, 1, 2)", "substring(text, start, n)"),
        ("date_trun('day', ts)", "date_trunc('day', time)"),
        ("summ(n)", "sum(x)"),
        ("Tumbel(ts, INTERVAL 1 MINUTE)", "tumble(time, size, offset)"),
    ],
)
def test_a_mistyped_function_is_answered_with_the_one_that_was_meant(call: str, meant: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k STRING, n INT, ts TIMESTAMP)")
    with pytest.raises(Unsupported) as failure:
        driver.sql(f"CREATE VIEW v AS SELECT {call} AS x FROM s")
    assert f"`{meant}`" in str(failure.value.hint)
