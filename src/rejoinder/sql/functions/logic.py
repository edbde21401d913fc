"""Comparisons and three-valued logic."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.operators import NULL_SAFE
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.time import windows
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, evaluated_once, mismatch, only, refuse

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_EQUALITIES = ("=", "<>", NULL_SAFE, "IS DISTINCT FROM")

_PREDICATES = (exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike, exp.Not)
_COMPARISONS = (*_SIGNS, exp.NullSafeEQ, exp.NullSafeNEQ)


def _refuse_chains(node: exp.Expr) -> None:
    """Refuse `a = b < c`, `a = b IN (c)` and the like: sqlglot reads them from the right, Spark from the left."""
    only(node, "this", "expression")
    # Around the right side of <=>, sqlglot writes parentheses of its own.
    right = node.expression.unnest() if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ) else node.expression
    if isinstance(node.this, _PREDICATES) or isinstance(right, (*_PREDICATES, *_COMPARISONS)):
        raise refuse(
            node, "conditions in a row without parentheses are not supported", "put parentheses around the inner one"
        )


def together(terms: Sequence[Term], node: exp.Expr) -> tuple[list[Term], pa.DataType]:
    """Bring terms to their common type. Raises `TypeMismatch` where Spark does."""
    kind = terms[0].type
    for term in terms[1:]:
        try:
            kind = spark_types.common_type(kind, term.type)
        except errors.TypeMismatch as failure:
            raise mismatch(node, failure.fact, failure.hint) from failure
    return [coerce(term, kind, node) for term in terms], kind


def compile_comparison(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `= <> < <= > >=`."""
    _refuse_chains(node)
    return _compare(_SIGNS[type(node)], compiler.compile(node.this), compiler.compile(node.expression), node)


def _compare(sign: str, left: Term, right: Term, node: exp.Expr) -> Term:
    (left, right), kind = together([left, right], node)
    if windows.is_window(kind) and sign in ("=", NULL_SAFE):
        return windows.compared(sign, left, right, lambda way, ours, theirs: _compare(way, ours, theirs, node))
    if spark_types.is_nested(kind) or kind == spark_types.CALENDAR:
        _check_nested(sign, kind, node)
    return Term(operators.compared(left.node, sign, right.node, in_turn=True))


def _check_nested(sign: str, kind: pa.DataType, node: exp.Expr) -> None:
    """Allow equality of ARRAY and STRUCT: DuckDB, like Spark, takes NULL inside for equal to NULL, and NaN to NaN."""
    if not spark_types.comparable(kind, kind):
        raise mismatch(
            node, f"`{sign}` on {spark_types.spark_name(kind)}: it has no order or equality", "take values out of it"
        )
    if sign not in _EQUALITIES:
        raise refuse(node, f"`{sign}` on {spark_types.spark_name(kind)} is not supported", "compare the fields")


def equal(left: Term, right: Term, node: exp.Expr) -> Term:
    """Compare two terms for equality."""
    return _compare("=", left, right, node)


def compile_null_safe_equality(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `<=>`, which is never NULL."""
    _refuse_chains(node)
    return _compare(NULL_SAFE, compiler.compile(node.this), compiler.compile(node.expression), node)


def compile_equal_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile EQUAL_NULL, the function of `<=>`."""
    left, right = arguments(node, 2)
    return _compare(NULL_SAFE, compiler.compile(left), compiler.compile(right), node)


def compile_null_safe_inequality(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile IS DISTINCT FROM."""
    _refuse_chains(node)
    return _compare("IS DISTINCT FROM", compiler.compile(node.this), compiler.compile(node.expression), node)


def compile_is(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile IS [NOT] NULL, TRUE and FALSE."""
    only(node, "this", "expression")
    term = compiler.compile(node.this)
    if isinstance(node.expression, exp.Null):
        return Term(operators.is_null(term.node))
    if isinstance(node.expression, exp.Boolean):
        test = "IS TRUE" if node.expression.this else "IS FALSE"
        return call(test, spark_types.BOOLEAN, truth(term, node), nulls="never")
    raise refuse(node, "this form of IS is not supported")


def truth(term: Term, node: exp.Expr) -> Term:
    """Require a condition."""
    if term.is_null or term.type == spark_types.BOOLEAN:
        return coerce(term, spark_types.BOOLEAN, node)
    raise mismatch(node, f"a condition must be boolean, not {spark_types.spark_name(term.type)}")


def compile_not(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NOT."""
    only(node, "this")
    return negated(truth(compiler.compile(node.this), node))


def negated(condition: Term) -> Term:
    """The condition that another one is not TRUE."""
    return call("NOT", spark_types.BOOLEAN, condition, nulls="propagated")


def compile_and(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile AND; a side that may fail is reached only by rows that Spark lets through."""
    return Term(nodes.And(truth(compiler.compile(part), node).node for part in node.flatten()))


def compile_or(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile OR, likewise."""
    return Term(nodes.Or(truth(compiler.compile(part), node).node for part in node.flatten()))


def compile_between(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile BETWEEN as the two comparisons that it is."""
    only(node, "this", "low", "high")
    low, high = compiler.compile(node.args["low"]), compiler.compile(node.args["high"])

    def within(value: Term) -> Term:
        return Term(nodes.And([_compare(">=", value, low, node).node, _compare("<=", value, high, node).node]))

    return evaluated_once(compiler.compile(node.this), within)


def compile_in(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile IN with a list; an element that may fail is reached only by rows that Spark lets through."""
    only(node, "this", "expressions")
    terms, kind = together([compiler.compile(part) for part in (node.this, *node.expressions)], node)
    if spark_types.is_nested(kind):
        _check_nested("=", kind, node)
    if any(term.can_fail for term in terms[1:]):
        return evaluated_once(terms[0], lambda value: _one_of(value, terms[1:]))
    return call("IN", spark_types.BOOLEAN, *terms, evaluation="all")


def _one_of(value: Term, terms: Sequence[Term]) -> Term:
    is_equal = nodes.Or(operators.compared(value.node, "=", term.node, in_turn=True) for term in terms)
    return Term(operators.when(operators.is_not_null(value.node), is_equal))


FUNCTIONS = (
    ScalarFunction(
        "equal_null(x, y)",
        "Whether two values are equal, where NULL equals NULL; like `x <=> y`.",
        "equal_null(NULL, NULL)",
        form=compile_equal_null,
    ),
    ScalarFunction(
        "x = y",
        "Whether two values compare in this way; NULL if one of them is.",
        "(1 = 1) AND (1 < 2) AND (2 >= 2) AND (1 <> 2)",
        operator="=",
        parsed=tuple(_SIGNS),
        form=compile_comparison,
    ),
    ScalarFunction(
        "x <=> y",
        "Whether two values are equal, where NULL equals NULL.",
        "NULL <=> NULL",
        operator="<=>",
        parsed=exp.NullSafeEQ,
        form=compile_null_safe_equality,
    ),
    ScalarFunction(
        "x IS DISTINCT FROM y",
        "Whether two values differ, where NULL equals NULL.",
        "1 IS DISTINCT FROM NULL",
        operator="IS DISTINCT FROM",
        parsed=exp.NullSafeNEQ,
        form=compile_null_safe_inequality,
    ),
    ScalarFunction(
        "x IS NULL",
        "Whether a value is NULL, TRUE or FALSE; also IS NOT.",
        "(NULL IS NULL) AND (TRUE IS TRUE)",
        operator="IS",
        parsed=exp.Is,
        form=compile_is,
    ),
    ScalarFunction(
        "NOT condition",
        "Whether a condition is FALSE.",
        "NOT FALSE",
        operator="NOT",
        parsed=exp.Not,
        form=compile_not,
    ),
    ScalarFunction(
        "condition AND condition",
        "Whether both conditions are TRUE.",
        "TRUE AND TRUE",
        operator="AND",
        parsed=exp.And,
        form=compile_and,
    ),
    ScalarFunction(
        "condition OR condition",
        "Whether a condition is TRUE.",
        "FALSE OR TRUE",
        operator="OR",
        parsed=exp.Or,
        form=compile_or,
    ),
    ScalarFunction(
        "x BETWEEN low AND high",
        "Whether a value is neither less than `low` nor greater than `high`.",
        "2 BETWEEN 1 AND 3",
        operator="BETWEEN",
        parsed=exp.Between,
        form=compile_between,
    ),
    ScalarFunction(
        "x IN (y, z)",
        "Whether a value equals one of a list.",
        "2 IN (1, 2)",
        operator="IN",
        parsed=exp.In,
        form=compile_in,
    ),
)
