"""Functions that make intervals of numbers."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions.scalar_operation import Nulls
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch

_SECONDS = pa.decimal128(18, 6)


def _compile_made(
    name: str, kind: pa.DataType, count: int, *, least: int = 0, has_seconds: bool = True
) -> NodeCompiler:
    """Make the compiler of a function that makes an interval of so many numbers; those left out are 0."""

    def compile_made(compiler: Compiler, node: exp.Expr) -> Term:
        terms = [compiler.compile(part) for part in arguments(node, *range(least, count + 1))]
        if not all(spark_types.is_numeric(term.type) or term.is_null for term in terms):
            raise mismatch(node, f"`{name}` takes numbers only", "CAST them")
        terms += [constant(0, spark_types.INT)] * (count - len(terms))
        kinds = [spark_types.INT] * (count - has_seconds) + [_SECONDS] * has_seconds
        parts = [cast(term, kind_, node) for term, kind_ in zip(terms, kinds, strict=True)]
        is_try = name.startswith("try_")
        nulls: Nulls = "possible" if is_try else "propagated"
        return call(name, kind, *parts, nulls=nulls, can_fail=not is_try)

    return compile_made


FUNCTIONS = (
    ScalarFunction(
        "make_dt_interval(days, hours, minutes, seconds)", "An INTERVAL DAY TO SECOND; numbers left out are 0.",
        "TIMESTAMP '2024-02-28 00:00:00' + make_dt_interval(1, 2) = TIMESTAMP '2024-02-29 02:00:00'",
        form=_compile_made("make_dt_interval", spark_types.DAY_TIME, 4),
    ),
    ScalarFunction(
        "make_interval(years, months, weeks, days, hours, minutes, seconds)",
        "An interval to add to a time, or to CAST to STRING; numbers left out are 0.",
        "DATE '2024-01-31' + make_interval(0, 1) = DATE '2024-02-29'",
        form=_compile_made("make_interval", spark_types.CALENDAR, 7),
    ),
    ScalarFunction(
        "make_ym_interval(years, months)", "An INTERVAL YEAR TO MONTH, to add to a time or to CAST to STRING.",
        "DATE '2024-01-31' + make_ym_interval(1, 1) = DATE '2025-02-28'",
        form=_compile_made("make_ym_interval", spark_types.YEAR_MONTH, 2, has_seconds=False),
    ),
    ScalarFunction(
        "try_make_interval(years, months, weeks, days, hours, minutes, seconds)",
        "As `make_interval`; NULL if a number is too large.",
        "CAST(try_make_interval(2147483647) AS STRING) IS NULL",
        form=_compile_made("try_make_interval", spark_types.CALENDAR, 7, least=1),
    ),
)  # fmt: skip
