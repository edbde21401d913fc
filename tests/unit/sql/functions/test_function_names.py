"""The list of functions is the list of what is compiled, and a mistyped name is answered with a signature."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from rejoinder.errors import Unsupported
from rejoinder.sql.bind.aggregate_functions import is_aggregate
from rejoinder.sql.functions import expression_compiler
from rejoinder.sql.functions.function_names import SIGNATURES
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.testing import Driver

_OPERATORS = (exp.And, exp.Or, exp.Case, exp.DateTrunc)


@pytest.mark.parametrize("signature", SIGNATURES.values())
def test_every_signature_names_a_function_that_is_compiled(signature: str) -> None:
    node = sqlglot.parse_one(signature, read=SparkSql)
    named = isinstance(node, exp.Anonymous) and node.name.lower() in expression_compiler._NAMED
    assert (
        is_aggregate(node)
        or named
        or (type(node) in expression_compiler._NODES and not isinstance(node, exp.Anonymous))
    )


def test_every_function_that_is_compiled_has_a_signature() -> None:
    nodes = {type(sqlglot.parse_one(signature, read=SparkSql)) for signature in SIGNATURES.values()}
    functions = {kind for kind in expression_compiler._NODES if issubclass(kind, exp.Func)} - set(_OPERATORS)
    assert functions <= nodes
    assert expression_compiler._NAMED.keys() <= SIGNATURES.keys()


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("lenght(k)", "length(text)"),
        ("substing(k, 1, 2)", "substring(text, start, n)"),
        ("date_trun('day', ts)", "date_trunc('day', time)"),
        ("summ(n)", "sum(x)"),
        ("Tumbel(ts, INTERVAL 1 MINUTE)", "tumble(time, size)"),
    ],
)
def test_a_mistyped_function_is_answered_with_the_one_that_was_meant(call: str, meant: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k STRING, n INT, ts TIMESTAMP)")
    with pytest.raises(Unsupported) as failure:
        driver.sql(f"CREATE VIEW v AS SELECT {call} AS x FROM s")
    assert f"`{meant}`" in str(failure.value.hint)
