"""Functions on strings. Positions and lengths count code points, as in Spark."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rejoinder.host.caps import cap_reached, caps
from rejoinder.sql.functions import letter_case
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, build, combine, failing, only, refuse

SMALL = 10_000  # characters, or copies
_POSITIVE = "CASE WHEN {1} < 0 THEN 0 ELSE {1} END"

NodeCompiler = Callable[[Compiler, exp.Expr], Term]


def text_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a string; numbers and dates are written out."""
    return coerce(compiler.compile(node), spark_types.STRING, parent)


def whole_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as an INT."""
    return coerce(compiler.compile(node), spark_types.INT, parent)


def _on_text(template: str, *others: str) -> NodeCompiler:
    """Make the compiler of a function from strings to a string."""

    def compile_function(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this", *others)
        terms = [text_argument(compiler, node.args[name], node) for name in ("this", *others)]
        return build(template, spark_types.STRING, *terms)

    return compile_function


def _on_pair(template: str) -> NodeCompiler:
    """Make the compiler of a test on two strings."""

    def compile_function(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this", "expression")
        terms = (text_argument(compiler, node.this, node), text_argument(compiler, node.expression, node))
        return build(template, spark_types.BOOLEAN, *terms)

    return compile_function


def compile_length(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LENGTH of a string or of bytes."""
    only(node, "this")
    term = compiler.compile(node.this)
    if term.type == spark_types.BINARY:
        return build("CAST(octet_length({0}) AS INTEGER)", spark_types.INT, term)
    return build("CAST(length({0}) AS INTEGER)", spark_types.INT, coerce(term, spark_types.STRING, node))


def compile_ascii(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ASCII: the first code point, 0 if there is none."""
    only(node, "this")
    return build("ascii({0})", spark_types.INT, text_argument(compiler, node.this, node))


def compile_trim(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TRIM, LTRIM and RTRIM, of spaces or of a set of characters."""
    only(node, "this", "position", "expression")
    side = str(node.args.get("position") or "BOTH").upper()
    verb = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
    term = text_argument(compiler, node.this, node)
    if node.expression is None:
        return build(f"{verb}({{0}}, ' ')", spark_types.STRING, term)
    return build(f"{verb}({{0}}, {{1}})", spark_types.STRING, term, text_argument(compiler, node.expression, node))


def compile_substring(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SUBSTRING: from 1, from the end if negative, 0 as 1; a start before the text uses up the length."""
    only(node, "this", "start", "length")
    text = text_argument(compiler, node.this, node)
    if node.args.get("start") is None:
        raise refuse(node, "SUBSTRING has no start", "write SUBSTRING(text, start)")
    start = whole_argument(compiler, node.args["start"], node)
    size = node.args.get("length")
    length = constant(2**31 - 1, spark_types.INT) if size is None else whole_argument(compiler, size, node)
    if start.literal and start.value is not None and start.value >= 0:
        return build(f"substring({{0}}, {max(start.value, 1)}, {_POSITIVE})", spark_types.STRING, text, length)
    first = "CASE WHEN {1} > 0 THEN {1} - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END"
    first = f"CAST({first} AS BIGINT)"
    # A length that is NULL makes the sum NULL, and CASE keeps it so, which greatest() would not.
    rest = f"(least({first}, 0) + {{2}})"
    taken = f"substring({{0}}, greatest({first}, 0) + 1, CASE WHEN {rest} < 0 THEN 0 ELSE {rest} END)"
    return build(f"CASE WHEN {{1}} IS NOT NULL THEN {taken} END", spark_types.STRING, text, start, length)


def compile_left(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LEFT."""
    only(node, "this", "expression")
    size = whole_argument(compiler, node.expression, node)
    return build(f"left({{0}}, {_POSITIVE})", spark_types.STRING, text_argument(compiler, node.this, node), size)


def compile_right(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile RIGHT."""
    only(node, "this", "expression")
    size = whole_argument(compiler, node.expression, node)
    return build(f"right({{0}}, {_POSITIVE})", spark_types.STRING, text_argument(compiler, node.this, node), size)


def compile_replace(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile REPLACE; without a replacement it deletes."""
    only(node, "this", "expression", "replacement")
    replacement = node.args.get("replacement")
    terms = [text_argument(compiler, part, node) for part in (node.this, node.expression)]
    terms.append(
        constant("", spark_types.STRING) if replacement is None else text_argument(compiler, replacement, node)
    )
    return build("replace({0}, {1}, {2})", spark_types.STRING, *terms)


def compile_pad(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LPAD and RPAD; with nothing to pad with, they only cut."""
    only(node, "this", "expression", "fill_pattern", "is_left")
    fill = node.args.get("fill_pattern")
    verb = "lpad" if node.args.get("is_left") else "rpad"
    text, size = text_argument(compiler, node.this, node), whole_argument(compiler, node.expression, node)
    filler = constant(" ", spark_types.STRING) if fill is None else text_argument(compiler, fill, node)
    padded = f"CASE WHEN {{2}} = '' THEN left({{0}}, {_POSITIVE}) ELSE {verb}({{0}}, {_POSITIVE}, {{2}}) END"
    return _capped(padded, "{1}", size, node, text, size, filler)


def compile_split_part(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SPLIT_PART; part 0 is an error, and nothing splits at an empty delimiter."""
    only(node, "this", "delimiter", "part_index")
    text, delimiter = (text_argument(compiler, node.args[name], node) for name in ("this", "delimiter"))
    part = whole_argument(compiler, node.args["part_index"], node)
    found = (
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {{2}} = 0 THEN {failing('SPLIT_PART counts from 1')} "
        "WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE split_part({0}, {1}, {2}) END"
    )
    return build(found, spark_types.STRING, text, delimiter, part, can_fail=not (part.literal and part.value))


def compile_concat(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CONCAT and `||`: NULL if a part is NULL."""
    only(node, "this", "expression", "expressions", "safe", "coalesce")
    if isinstance(node.args.get("expression"), exp.Add | exp.Sub):
        # Spark reads `||`, `+` and `-` from left to right, sqlglot the sum first.
        raise refuse(node, "`||` before `+` or `-` without parentheses is not supported", "put the sum in parentheses")
    if isinstance(node, exp.Concat) and "safe" not in node.args:
        raise refuse(node, "strings side by side are not supported", "write CONCAT, or \\' for a quote inside a string")
    parts = node.expressions or [node.this, node.expression]
    compiled = [compiler.compile(part) for part in parts]
    if any(spark_types.is_nested(term.type) or term.type == spark_types.BINARY for term in compiled):
        raise refuse(node, "CONCAT takes strings only")
    terms = [coerce(term, spark_types.STRING, node) for term in compiled]
    if len(terms) > 9:
        raise refuse(node, "CONCAT of more than nine parts is not supported", "nest it")
    places = " || ".join(f"{{{place}}}" for place in range(len(terms)))
    return combine(f"({places})", spark_types.STRING, *terms)


def compile_concat_ws(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CONCAT_WS, which leaves NULLs out."""
    only(node, "expressions", "safe", "coalesce", "flatten")
    compiled = [compiler.compile(part) for part in node.expressions]
    if any(spark_types.is_nested(term.type) for term in compiled):
        raise refuse(node, "CONCAT_WS of arrays is not supported")
    terms = [coerce(term, spark_types.STRING, node) for term in compiled]
    if not 2 <= len(terms) <= 9:
        raise refuse(node, "CONCAT_WS takes one to eight parts")
    return combine(f"concat_ws({', '.join(f'{{{place}}}' for place in range(len(terms)))})", spark_types.STRING, *terms)


def compile_repeat(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile REPEAT."""
    only(node, "this", "times")
    times = whole_argument(compiler, node.args["times"], node)
    text = text_argument(compiler, node.this, node)
    length = "length({0})::HUGEINT * {1}"
    return _capped(f"repeat({{0}}, {_POSITIVE})", length, times, node, text, times)


def _capped(template: str, length: str, times: Term, node: exp.Expr, *terms: Term) -> Term:
    """A function that makes a text whose length the arguments say: refused, or failing on the row, beyond the cap.

    A count that is written down and small needs no guard: what a row brings is limited by what was read.
    """
    most = caps().max_value_length
    if times.literal and isinstance(times.value, int):
        if times.value > most:
            raise cap_reached(
                "a function would make too long a text", "max_value_length", f"{times.value:,} in {text_of(node)[:200]}"
            )
        if times.value <= SMALL:
            return build(template, spark_types.STRING, *terms)
    message = failing(f"a text would have more than {most} characters; the cap is max_value_length")
    guarded = f"CASE WHEN {length} > {most} THEN {message} ELSE {template} END"
    return build(guarded, spark_types.STRING, *terms, can_fail=True)


def compile_position(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile INSTR, LOCATE, POSITION and CHARINDEX, from the first character on."""
    only(node, "this", "substr")
    text, part = text_argument(compiler, node.this, node), text_argument(compiler, node.args["substr"], node)
    return build("CAST(instr({0}, {1}) AS INTEGER)", spark_types.INT, text, part)


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Upper: _on_text(letter_case.upper("{0}")),
    exp.Lower: _on_text(letter_case.lower("{0}")),
    # DuckDB reverses what people see as letters, Spark code points.
    exp.Reverse: _on_text("array_to_string(list_reverse(string_split({0}, '')), '')"),
    exp.Translate: _on_text("translate({0}, {1}, {2})", "from_", "to"),
    exp.StartsWith: _on_pair("starts_with({0}, {1})"),
    exp.EndsWith: _on_pair("suffix({0}, {1})"),
    exp.Contains: _on_pair("contains({0}, {1})"),
    exp.Ascii: compile_ascii,
    exp.Length: compile_length,
    exp.Trim: compile_trim,
    exp.Substring: compile_substring,
    exp.Left: compile_left,
    exp.Right: compile_right,
    exp.Replace: compile_replace,
    exp.Pad: compile_pad,
    exp.SplitPart: compile_split_part,
    exp.Concat: compile_concat,
    exp.DPipe: compile_concat,
    exp.ConcatWs: compile_concat_ws,
    exp.Repeat: compile_repeat,
    exp.StrPosition: compile_position,
}
