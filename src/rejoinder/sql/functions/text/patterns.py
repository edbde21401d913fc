"""LIKE, RLIKE and REGEXP_EXTRACT with literal patterns.

RLIKE takes Java's regular expressions, and DuckDB has RE2. Supported is what means the same in both: characters,
classes, groups, alternatives and greedy repetition; `.`, `^`, `$` and `\\s` are rewritten to what they mean in Java.
"""

from __future__ import annotations

import re

from sqlglot import exp

from rejoinder import errors
from rejoinder.kernels.duckdb.functions.text.patterns import LINE_ENDS
from rejoinder.sql.functions.logic import negated
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, only, refuse

_PIECES = re.compile(
    r"""(?P<escape>\\[\\.\[\]{}()*+?^$|/\-"'#&@!%,:;<=>~`_ ])   # an escaped sign is that sign
    |(?P<digits>\\[dwDWtnr])                                    # the same letters in both
    |(?P<blank>\\s)
    |(?P<class>\[\^?-?(?:[^\\\[\]&^-](?:-[^\\\[\]&^-])?|&(?!&)|\\[\\\[\]^\-.dwtnr])+-?\])
    |(?P<repeat>(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})(?![*+?{]))
    |(?P<group>\((?:\?:)?(?!\?)|\)|\|)
    |(?P<any>\.)
    |(?P<start>\^)
    |(?P<end>\$)
    |(?P<plain>[^\\.\[\]{}()*+?^$|])""",
    re.VERBOSE | re.DOTALL,
)


def compile_like(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LIKE, with backslash as escape unless another is named."""
    if isinstance(node, exp.Escape):
        only(node, "this", "expression")
        escape = node.expression
        if not isinstance(node.this, exp.Like) or not isinstance(escape, exp.Literal) or len(escape.this) != 1:
            raise refuse(node, "this form of ESCAPE is not supported", "name one character")
        return _like(compiler, node.this, escape.this)
    return _like(compiler, node, "\\")


def _like(compiler: Compiler, node: exp.Expr, escape: str) -> Term:
    only(node, "this", "expression", "negate")
    pattern = compiler.compile(node.expression)
    if not pattern.literal or pattern.type != spark_types.STRING:
        raise refuse(node, "LIKE takes a literal pattern only", "use contains, startswith or endswith")
    _check_escapes(pattern.value, escape, node)
    text = coerce(compiler.compile(node.this), spark_types.STRING, node)
    is_like = call("LIKE", spark_types.BOOLEAN, text, pattern, options=(escape,), nulls="propagated")
    return negated(is_like) if node.args.get("negate") else is_like


def _check_escapes(pattern: str, escape: str, node: exp.Expr) -> None:
    position = 0
    while (position := pattern.find(escape, position)) >= 0:
        if pattern[position + 1 : position + 2] not in ("_", "%", escape):
            raise errors.InvalidSql(
                f"the pattern '{pattern}' escapes what needs no escape",
                detail=f"in `{text_of(node)}`",
                hint=f"after {escape} must come _, % or {escape}",
            )
        position += 2


def compile_rlike(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile RLIKE and REGEXP: TRUE if the pattern is found anywhere."""
    only(node, "this", "expression", "negate")
    pattern = compiler.compile(node.expression)
    if not pattern.literal or pattern.type != spark_types.STRING:
        raise refuse(node, "RLIKE takes a literal pattern only")
    rewritten, at_end = _rewritten(pattern.value, node)
    text = coerce(compiler.compile(node.this), spark_types.STRING, node)
    operand = constant(rewritten, spark_types.STRING)
    is_like = call("RLIKE", spark_types.BOOLEAN, text, operand, nulls="propagated", can_fail=at_end)
    return negated(is_like) if node.args.get("negate") else is_like


def literal_pattern(compiler: Compiler, pattern: exp.Expr, node: exp.Expr) -> tuple[str, str, bool]:
    """A literal regular expression as it is written and for RE2, and whether it asks for the end of the text."""
    term = compiler.compile(pattern)
    if not term.literal or term.type != spark_types.STRING:
        raise refuse(node, f"`{node.name}` takes a literal pattern only")
    return term.value, *_rewritten(term.value, node)


def compile_regexp_extract(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile REGEXP_EXTRACT: a group of the first match, empty if nothing matches or the group takes no part."""
    only(node, "this", "expression", "group", "null_if_pos_overflow")
    pattern = compiler.compile(node.expression)
    if not pattern.literal or pattern.type != spark_types.STRING:
        raise refuse(node, "regexp_extract takes a literal pattern only")
    group = compiler.compile(node.args["group"])  # sqlglot adds the default, 1
    if not group.literal or not spark_types.is_integer(group.type):
        raise refuse(node, "regexp_extract takes a literal group only", "0 is the whole match, 1 the first group")
    rewritten, at_end = _rewritten(pattern.value, node)
    groups = re.compile(pattern.value).groups
    if not 0 <= group.value <= groups:
        raise errors.InvalidSql(
            f"the pattern '{pattern.value}' has no group {group.value}",
            detail=f"in `{text_of(node)}`",
            hint=f"it has {groups} groups; 0 is the whole match",
        )
    text = coerce(compiler.compile(node.this), spark_types.STRING, node)
    operand = constant(rewritten, spark_types.STRING)
    options = (group.value,)
    name, kind = "regexp_extract", spark_types.STRING
    return call(name, kind, text, operand, options=options, nulls="propagated", can_fail=at_end)


def _rewritten(pattern: str, node: exp.Expr) -> tuple[str, bool]:
    """The pattern for RE2, and whether it asks for the end of the text."""
    parts: list[str] = []
    position, at_end = 0, False
    while position < len(pattern):
        piece = _PIECES.match(pattern, position)
        if piece is None:
            raise refuse(
                node,
                "this regular expression is not supported",
                f"Java and RE2 may differ from `{pattern[position : position + 10]}` on; use LIKE or contains",
            )
        position = piece.end()
        text = piece.group()
        match piece.lastgroup:
            case "any":
                text = f"[^{LINE_ENDS}]"
            case "blank":
                text = r"[ \t\n\x0B\f\r]"
            case "start":
                text = r"\A"
            case "end":
                text, at_end = r"\z", True
            case "repeat" if not parts:
                raise refuse(node, "this regular expression is not supported", "a repetition needs something before it")
            case "escape":
                text = "\\" + text[1] if text[1] in r"\.[]{}()*+?^$|-" else text[1]
        parts.append(text)
    try:
        re.compile(pattern)
    except re.error as failure:
        raise errors.InvalidSql(f"`{pattern}` is not a regular expression", detail=str(failure)) from failure
    return "".join(parts), at_end


FUNCTIONS = (
    ScalarFunction(
        "text LIKE pattern",
        "Whether a literal pattern with `%` and `_` matches the whole text.",
        "'rejoinder' LIKE 're%'",
        operator="LIKE",
        aliases=("like(text, pattern)",),
        parsed=(exp.Like, exp.Escape),
        form=compile_like,
    ),
    ScalarFunction(
        "text RLIKE pattern",
        "Whether a literal regular expression matches anywhere in the text.",
        "'rejoinder' RLIKE 'jo+i'",
        operator="RLIKE",
        aliases=("regexp_like(text, pattern)", "regexp(text, pattern)", "rlike(text, pattern)"),
        parsed=exp.RegexpLike,
        form=compile_rlike,
    ),
    ScalarFunction(
        "regexp_extract(text, pattern, group)",
        "A group of the first match of a literal regular expression; empty if there is none.",
        "regexp_extract('id=42&x', 'id=([0-9]+)', 1) = '42'",
        parsed=exp.RegexpExtract,
        form=compile_regexp_extract,
    ),
)
