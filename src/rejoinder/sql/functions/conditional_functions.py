"""CASE, COALESCE, and other functions that choose one of their arguments."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions import operators
from rejoinder.sql.functions.logic import equal, together, truth
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.time import windows
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import NULL, Compiler, Term, call, choice, evaluated_once, mismatch, only


def compile_case(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CASE, searched or with an operand."""
    only(node, "this", "ifs", "default")
    conditions = [compiler.compile(branch.this) for branch in node.args["ifs"]]
    results = [compiler.compile(branch.args["true"]) for branch in node.args["ifs"]]
    if node.args.get("default") is not None:
        results.append(compiler.compile(node.args["default"]))
    if node.this is None:
        return choose([truth(condition, node) for condition in conditions], results, node)
    operand = compiler.compile(node.this)
    return evaluated_once(
        operand, lambda value: choose([equal(value, condition, node) for condition in conditions], results, node)
    )


def compile_if(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile IF(condition, then, else)."""
    only(node, "this", "true", "false")
    results = [compiler.compile(node.args["true"])]
    if node.args.get("false") is not None:
        results.append(compiler.compile(node.args["false"]))
    return choose([truth(compiler.compile(node.this), node)], results, node)


def choose(conditions: Sequence[Term], results: Sequence[Term], node: exp.Expr) -> Term:
    """Take the result of the first condition that is TRUE; a last result without a condition is the default."""
    results, kind = together(results, node)
    if pa.types.is_null(kind):
        return results[0]
    term = choice(conditions, results, kind)
    return windows.with_chosen_bounds(term, results, lambda ends: choose(conditions, ends, node))


def compile_coalesce(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile COALESCE, NVL and IFNULL."""
    only(node, "this", "expressions")
    terms, kind = together([compiler.compile(part) for part in (node.this, *node.expressions)], node)
    if pa.types.is_null(kind):
        return terms[0]
    return _first_present(terms)


def _first_present(terms: Sequence[Term]) -> Term:
    term = Term(operators.coalesce([term.node for term in terms]))
    return windows.with_chosen_bounds(term, terms, lambda ends: _first_present(ends))


def compile_null_if(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NULLIF: the type is that of the first value."""
    only(node, "this", "expression")
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if left.is_null:
        return left
    return choose([equal(left, right, node)], [NULL, left], node)


def compile_if_not_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NVL2."""
    only(node, "this", "true", "false")
    tested = Term(operators.is_not_null(compiler.compile(node.this).node))
    return choose([tested], [compiler.compile(node.args[name]) for name in ("true", "false")], node)


def compile_zero_if_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ZEROIFNULL."""
    (value,) = arguments(node, 1)
    terms, _ = together([compiler.compile(value), constant(0, spark_types.INT)], node)
    return Term(operators.coalesce([term.node for term in terms]))


def compile_null_if_zero(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NULLIFZERO: NULLIF(x, 0)."""
    (value,) = arguments(node, 1)
    term = compiler.compile(value)
    return term if term.is_null else choose([equal(term, constant(0, spark_types.INT), node)], [NULL, term], node)


def _is_null(compiler: Compiler, node: exp.Expr) -> Term:
    (value,) = arguments(node, 1)
    return Term(operators.is_null(compiler.compile(value).node))


def _is_not_null(compiler: Compiler, node: exp.Expr) -> Term:
    (value,) = arguments(node, 1)
    return Term(operators.is_not_null(compiler.compile(value).node))


def compile_raise(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile RAISE_ERROR: where it is evaluated, the row fails. It takes the type of what stands beside it."""
    (message,) = arguments(node, 1)
    text, terms = _message(compiler, message)
    return call("raise_error", spark_types.NULL, *terms, options=(text,), evaluation="all", can_fail=True)


def compile_assert(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ASSERT_TRUE: NULL, and the row fails where the condition is not TRUE."""
    condition, *message = arguments(node, 1, 2)
    text, terms = _message(compiler, message[0]) if message else (f"'{text_of(condition)}' is not true!", ())
    tested = truth(compiler.compile(condition), node)
    return call("assert_true", spark_types.NULL, tested, *terms, options=(text,), evaluation="all", can_fail=True)


def _message(compiler: Compiler, node: exp.Expr) -> tuple[str, Sequence[Term]]:
    """A literal message; of another one its text and its term: a failure names the row, which has the values."""
    term = compiler.compile(node)
    if term.type != spark_types.STRING:
        raise mismatch(node, f"a message is a text, not {spark_types.spark_name(term.type)}")
    return (str(term.value), ()) if term.literal else (text_of(node), (term,))


FUNCTIONS = (
    ScalarFunction(
        "assert_true(condition, message)",
        "NULL; a row on which the condition is not TRUE fails with the message.",
        "coalesce(assert_true(1 < 2), 'valid') = 'valid'",
        form=compile_assert,
    ),
    ScalarFunction(
        "CASE WHEN condition THEN x ELSE y END",
        "The result of the first condition that is TRUE, or of the first value that equals the operand.",
        "CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END = 'b'",
        operator="CASE",
        parsed=exp.Case,
        form=compile_case,
    ),
    ScalarFunction(
        "coalesce(x, y)",
        "The first value that is not NULL.",
        "coalesce(NULL, 1) = 1",
        aliases=("ifnull", "nvl"),
        parsed=exp.Coalesce,
        form=compile_coalesce,
    ),
    ScalarFunction(
        "if(condition, x, y)",
        "`x` if the condition is TRUE, else `y`.",
        "if(1 < 2, 'a', 'b') = 'a'",
        parsed=exp.If,
        form=compile_if,
    ),
    ScalarFunction(
        "isnotnull(x)",
        "Whether a value is not NULL.",
        "isnotnull(1)",
        form=_is_not_null,
    ),
    ScalarFunction(
        "isnull(x)",
        "Whether a value is NULL.",
        "isnull(NULL)",
        form=_is_null,
    ),
    ScalarFunction(
        "nullif(x, y)",
        "`x`, or NULL if it equals `y`.",
        "nullif(1, 1) IS NULL",
        parsed=exp.Nullif,
        form=compile_null_if,
    ),
    ScalarFunction(
        "nullifzero(x)",
        "The number, or NULL if it is 0.",
        "nullifzero(0) IS NULL",
        form=compile_null_if_zero,
    ),
    ScalarFunction(
        "nvl2(x, y, z)",
        "`y` if `x` is not NULL, else `z`.",
        "nvl2(NULL, 1, 2) = 2",
        parsed=exp.Nvl2,
        form=compile_if_not_null,
    ),
    ScalarFunction(
        "raise_error(message)",
        "Fails the row with a message, where it is evaluated.",
        "if(1 < 2, 'valid', raise_error('the row is not valid')) = 'valid'",
        form=compile_raise,
    ),
    ScalarFunction(
        "zeroifnull(x)",
        "The number, or 0 if it is NULL.",
        "zeroifnull(CAST(NULL AS INT)) = 0",
        form=compile_zero_if_null,
    ),
)
