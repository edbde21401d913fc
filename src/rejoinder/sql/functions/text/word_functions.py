"""More functions on strings: parts of lists in a text, letters, and text in another form."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument, whole_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

_TEXT, _INT = spark_types.STRING, spark_types.INT


def compile_choice(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ELT: the n-th of several texts; a number outside of them fails."""
    if len(node.expressions) < 2:
        raise refuse(node, "elt takes a number and texts")
    number = whole_argument(compiler, node.expressions[0], node)
    compiled = [compiler.compile(part) for part in node.expressions[1:]]
    if all(term.type == spark_types.BINARY for term in compiled):
        raise refuse(node, "elt of bytes is not supported")
    terms, _ = together([coerce(term, _TEXT, node) for term in compiled], node)
    return call("elt", _TEXT, number, *terms, evaluation="lazy", can_fail=True)


def compile_both_trim(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile BTRIM, of spaces or of a set of characters."""
    terms = [text_argument(compiler, part, node) for part in arguments(node, 1, 2)]
    return call("trim", _TEXT, *terms)


def compile_levenshtein(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LEVENSHTEIN; beyond a threshold it is -1."""
    parts = arguments(node, 2, 3)
    texts = [text_argument(compiler, part, node) for part in parts[:2]]
    limits = [whole_argument(compiler, part, node) for part in parts[2:]]
    return call("levenshtein", _INT, *texts, *limits, evaluation="all")


FUNCTIONS = (
    ScalarFunction(
        "btrim(text, letters)", "The text without spaces, or a set of characters, at both ends.",
        "btrim('xax', 'x') = 'a'", form=compile_both_trim,
    ),
    ScalarFunction(
        "char(n)", "The character of a code, modulo 256; empty for a negative one.", "char(65) = 'A'",
        (lambda compiler, node, parent: coerce(compiler.compile(node), spark_types.BIGINT, parent),), _TEXT,
        aliases=("chr",), nulls="propagated",
    ),
    ScalarFunction(
        "elt(n, x, y)", "The `n`-th of some texts.", "elt(2, 'a', 'b') = 'b'", form=compile_choice
    ),
    ScalarFunction(
        "find_in_set(text, list)", "The position of a text in a list with commas; 0 if it is not there.",
        "find_in_set('b', 'a,b') = 2", (text_argument, text_argument), _INT, nulls="propagated",
    ),
    ScalarFunction(
        "levenshtein(x, y)", "How many letters must be changed to get from one text to another.",
        "levenshtein('kitten', 'sitting') = 3", form=compile_levenshtein, outside_duckdb=True,
    ),
    ScalarFunction(
        "overlay(text, other, start, n)", "The text with `n` characters from `start` replaced by another text.",
        "overlay('Spark', '_', 3, 1) = 'Sp_rk'",
        (text_argument, text_argument, whole_argument, whole_argument), _TEXT,
        defaults=(constant(-1, _INT),), nulls="propagated",
    ),
    ScalarFunction(
        "quote(text)", "The text in single quotes, with a backslash before quotes.", "length(quote('a')) = 3",
        (text_argument,), _TEXT, nulls="propagated",
    ),
    ScalarFunction(
        "substring_index(text, separator, n)",
        "What is before the `n`-th separator, or after it, counted from the end, if `n` is negative.",
        "substring_index('a.b.c', '.', 2) = 'a.b'", (text_argument, text_argument, whole_argument), _TEXT,
        nulls="propagated",
    ),
)  # fmt: skip
