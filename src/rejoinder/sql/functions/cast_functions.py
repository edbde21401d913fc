"""CAST, TRY_CAST, and the functions named after types."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, read_literal
from rejoinder.sql.types.terms import Compiler, Term, only


def compile_cast(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CAST, `::`, TRY_CAST, typed literals such as DATE '…', and the functions named after types."""
    only(node, "this", "to", "safe")
    kind, is_try = spark_types.arrow_type(node.args["to"]), bool(node.args.get("safe"))
    term = compiler.compile(node.this)
    if isinstance(node.this, exp.Literal):
        if node.this.is_string and (spark_types.is_datetime(kind) or kind == spark_types.TIME) and not is_try:
            return read_literal(node.this.this, kind, node)
        # sqlglot reads `1L` as `1::BIGINT`; CAST(1 AS BIGINT) has more arguments.
        if spark_types.is_numeric(kind) and "format" not in node.args:
            return replace(cast(term, kind, node), suffixed=True)
    return cast(term, kind, node, is_try=is_try)


FUNCTIONS = (
    ScalarFunction(
        "cast(x AS INT)",
        "A value as another type, also `x::INT`; one that does not fit fails the row, with try_cast it is NULL.",
        "(CAST('12' AS INT) = 12) AND (TRY_CAST('a' AS INT) IS NULL)",
        aliases=("try_cast",),
        parsed=(exp.Cast, exp.TryCast),
        form=compile_cast,
    ),
)
