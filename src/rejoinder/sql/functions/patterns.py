"""LIKE and RLIKE with literal patterns.

RLIKE takes Java's regular expressions, and DuckDB has RE2. Offered is what means the same in both: characters, classes,
groups, alternatives and greedy repetition; `.`, `^`, `$` and `\\s` are rewritten to what Java takes them for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, build, failing, only, quote_text, refuse

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_PIECES = re.compile(
    r"""(?P<escape>\\[\\.\[\]{}()*+?^$|/\-"'#&@!%,:;<=>~`_ ])   # an escaped sign is that sign
    |(?P<digits>\\[dwDWtnr])                                    # the same letters in both
    |(?P<blank>\\s)
    |(?P<class>\[\^?-?(?:[^\\\[\]&^-](?:-[^\\\[\]&^-])?|\\[\\\[\]^\-.dwtnr])+-?\])
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
    matched = f"({{0}} LIKE {{1}} ESCAPE {quote_text(escape)})"
    return build(f"(NOT {matched})" if node.args.get("negate") else matched, spark_types.BOOLEAN, text, pattern)


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
    found = "regexp_matches({0}, {1})"
    if at_end:
        # Java's $ also stands before a last line end, and how depends on what was read before.
        ended = f"regexp_matches({{0}}, '[{_LINE_ENDS}]\\z')"
        message = failing("RLIKE with $ on a text that ends with a line end is not supported")
        found = f"CASE WHEN {ended} THEN {message} ELSE {found} END"
    return build(
        f"(NOT {found})" if node.args.get("negate") else found,
        spark_types.BOOLEAN,
        text,
        constant(rewritten, spark_types.STRING),
    )


def _rewritten(pattern: str, node: exp.Expr) -> tuple[str, bool]:
    """Give the pattern for RE2, and whether it asks for the end of the text."""
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
                text = f"[^{_LINE_ENDS}]"
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


NODES: dict[type[exp.Expr], Callable[[Compiler, exp.Expr], Term]] = {
    exp.Like: compile_like,
    exp.Escape: compile_like,
    exp.RegexpLike: compile_rlike,
}
