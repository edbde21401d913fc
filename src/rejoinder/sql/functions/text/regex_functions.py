"""Functions that look for a literal regular expression in all of a text. `patterns` says which ones are supported.

An expression that matches the empty text is refused here: Java and RE2 continue differently after an empty match.
"""

from __future__ import annotations

import re

from sqlglot import exp

from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.patterns import compile_like, literal_pattern
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

_TEXT, _INT = spark_types.STRING, spark_types.INT
_REPLACEMENT = re.compile(r"\$(?P<group>[0-9])(?![0-9])|\\(?P<escaped>.)|(?P<plain>[^$\\])", re.DOTALL)


def _searched(
    compiler: Compiler, node: exp.Expr, pattern: exp.Expr, *, anchored: bool = False
) -> tuple[str, Term, bool]:
    """The expression as it is written and for RE2, and whether a row may fail. It must match a character at least."""
    written, rewritten, at_end = literal_pattern(compiler, pattern, node)
    if re.search(written, ""):
        raise refuse(node, f"the expression '{written}' matches the empty text, which is not supported here", "use +")
    if not anchored and re.search(r"(?<![\\\[])\^", written):
        raise refuse(node, f"`^` in '{written}' is not supported here", "use regexp_extract or regexp_replace")
    return written, constant(rewritten, _TEXT), at_end


def compile_replace(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile REGEXP_REPLACE with a literal replacement, in which `$1` is the first group."""
    text, pattern, other = arguments(node, 3)
    written, searched, at_end = _searched(compiler, node, pattern, anchored=True)
    replacement = compiler.compile(other)
    if not replacement.literal or replacement.type != _TEXT:
        raise refuse(node, "regexp_replace takes a literal replacement only")
    groups, parts, position = re.compile(written).groups, [], 0
    while position < len(replacement.value):
        piece = _REPLACEMENT.match(replacement.value, position)
        if piece is None or (piece["group"] and int(piece["group"]) > groups):
            raise refuse(node, f"the replacement '{replacement.value}' is not supported", "use $1 to $9")
        plain = (piece["escaped"] or piece["plain"] or "").replace("\\", "\\\\")
        parts.append(f"\\{piece['group']}" if piece["group"] else plain)
        position = piece.end()
    terms = text_argument(compiler, text, node), searched, constant("".join(parts), _TEXT)
    return call("regexp_replace", _TEXT, *terms, nulls="propagated", can_fail=at_end)


def compile_extract_all(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile REGEXP_EXTRACT_ALL: a group of every match, the first if none is named."""
    text, pattern, *rest = arguments(node, 2, 3)
    written, searched, at_end = _searched(compiler, node, pattern)
    group = compiler.compile(rest[0]) if rest else constant(1, _INT)
    if not group.literal or group.value not in range(re.compile(written).groups + 1):
        raise refuse(node, "regexp_extract_all takes a literal group of the expression", "0 is the whole match")
    terms = text_argument(compiler, text, node), searched
    kind = spark_types.array_of(_TEXT)
    return call("regexp_extract_all", kind, *terms, options=(group.value,), nulls="propagated", can_fail=at_end)


def _compile_search(name: str, kind: object) -> NodeCompiler:
    """Make the compiler of a function of a text and an expression."""

    def compile_search(compiler: Compiler, node: exp.Expr) -> Term:
        text, pattern = arguments(node, 2)
        _, searched, at_end = _searched(compiler, node, pattern, anchored=name == "regexp_substr")
        return call(name, kind, text_argument(compiler, text, node), searched, can_fail=at_end)

    return compile_search


def compile_split(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SPLIT; a literal limit above 0 leaves the rest of the text in the last part."""
    text, pattern, *rest = arguments(node, 2, 3)
    limit = compiler.compile(rest[0]) if rest else constant(0, _INT)
    if not limit.literal or not spark_types.is_integer(limit.type):
        raise refuse(node, "split takes a literal limit only", "use split_part, or regexp_extract")
    _, searched, at_end = _searched(compiler, node, pattern)
    kind = spark_types.array_of(_TEXT)
    terms = text_argument(compiler, text, node), searched
    options = (max(int(limit.value), 0),)
    return call("split", kind, *terms, options=options, nulls="propagated", can_fail=at_end)


def compile_ilike(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ILIKE with a pattern of ASCII: LIKE of the text in lower case."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or not pattern.this.isascii():
        raise refuse(node, "ILIKE takes a literal pattern of ASCII only", "write LOWER(text) LIKE 'pattern'")
    lower = exp.Like(this=exp.Lower(this=node.this.copy()), expression=exp.Literal.string(pattern.this.lower()))
    lower.set("negate", node.args.get("negate"))
    return compile_like(compiler, lower)


FUNCTIONS = (
    ScalarFunction(
        "text ILIKE pattern", "LIKE without regard to upper and lower case.", "'Abc' ILIKE 'aB%'", operator="ILIKE",
        aliases=("ilike(text, pattern)",), parsed=exp.ILike, form=compile_ilike,
    ),
    ScalarFunction(
        "regexp_count(text, pattern)", "How often a literal regular expression matches.",
        "regexp_count('a1b22', '[0-9]+') = 2", form=_compile_search("regexp_count", _INT),
    ),
    ScalarFunction(
        "regexp_extract_all(text, pattern, group)", "A group of every match of a literal regular expression.",
        "regexp_extract_all('a1b22', '([0-9]+)', 1) = array('1', '22')", form=compile_extract_all,
    ),
    ScalarFunction(
        "regexp_instr(text, pattern)", "The position of the first match, from 1; 0 if there is none.",
        "regexp_instr('ab1', '[0-9]') = 3", form=_compile_search("regexp_instr", _INT),
    ),
    ScalarFunction(
        "regexp_replace(text, pattern, other)", "The text with every match replaced; `$1` is the first group.",
        "regexp_replace('a1b22', '([0-9]+)', '<$1>') = 'a<1>b<22>'", form=compile_replace,
    ),
    ScalarFunction(
        "regexp_substr(text, pattern)", "The first match of a literal regular expression; NULL if there is none.",
        "regexp_substr('a1b22', '[0-9]{2}') = '22'", form=_compile_search("regexp_substr", _TEXT),
    ),
    ScalarFunction(
        "split(text, pattern, limit)", "The parts of a text between the matches of a literal regular expression.",
        "split('a, b;c', '[,;] ?') = array('a', 'b', 'c')", form=compile_split,
    ),
)  # fmt: skip
