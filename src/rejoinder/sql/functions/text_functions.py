"""Functions on strings. Positions and lengths count code points, as in Spark."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.host.caps import cap_reached, caps
from rejoinder.sql.functions import letter_case
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, parsed_as_nodes
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, build, combine, failing, only, refuse

SMALL = 10_000  # characters, or copies
_POSITIVE = "CASE WHEN {1} < 0 THEN 0 ELSE {1} END"


def text_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a string; numbers and dates are written out."""
    return coerce(compiler.compile(node), spark_types.STRING, parent)


def whole_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as an INT."""
    return coerce(compiler.compile(node), spark_types.INT, parent)


def _text_or_bytes(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    term = compiler.compile(node)
    return term if term.type == spark_types.BINARY else coerce(term, spark_types.STRING, parent)


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


FUNCTIONS = (
    ScalarFunction(
        "upper(text)",
        (text_argument,),
        spark_types.STRING,
        letter_case.upper("{0}"),
        "The text in capitals.",
        parsed=exp.Upper,
        aliases=("ucase",),
        can_fail=True,
    ),
    ScalarFunction(
        "lower(text)",
        (text_argument,),
        spark_types.STRING,
        letter_case.lower("{0}"),
        "The text in small letters.",
        parsed=exp.Lower,
        aliases=("lcase",),
        can_fail=True,
    ),
    ScalarFunction(
        "reverse(text)",
        (text_argument,),
        spark_types.STRING,
        # DuckDB reverses what people see as letters, Spark code points.
        "array_to_string(list_reverse(string_split({0}, '')), '')",
        "The text from its end to its start.",
        parsed=exp.Reverse,
    ),
    ScalarFunction(
        "translate(text, letters, others)",
        (text_argument, text_argument, text_argument),
        spark_types.STRING,
        "translate({0}, {1}, {2})",
        "The text with each of some letters replaced by another.",
        parsed=exp.Translate,
    ),
    ScalarFunction(
        "startswith(text, part)",
        (text_argument, text_argument),
        spark_types.BOOLEAN,
        "starts_with({0}, {1})",
        "Whether the text starts with another.",
        parsed=exp.StartsWith,
    ),
    ScalarFunction(
        "endswith(text, part)",
        (text_argument, text_argument),
        spark_types.BOOLEAN,
        "suffix({0}, {1})",
        "Whether the text ends with another.",
        parsed=exp.EndsWith,
    ),
    ScalarFunction(
        "contains(text, part)",
        (text_argument, text_argument),
        spark_types.BOOLEAN,
        "contains({0}, {1})",
        "Whether the text has another in it.",
        parsed=exp.Contains,
    ),
    ScalarFunction(
        "ascii(text)",
        (text_argument,),
        spark_types.INT,
        "ascii({0})",
        "The first code point, 0 if there is none.",
        parsed=exp.Ascii,
    ),
    ScalarFunction(
        "length(text)",
        (_text_or_bytes,),
        spark_types.INT,
        lambda terms: f"CAST({'octet_length' if terms[0].type == spark_types.BINARY else 'length'}({{0}}) AS INTEGER)",
        "The number of characters of a text, or of bytes.",
        parsed=exp.Length,
        aliases=("len", "char_length", "character_length"),
    ),
    ScalarFunction(
        "left(text, n)",
        (text_argument, whole_argument),
        spark_types.STRING,
        f"left({{0}}, {_POSITIVE})",
        "The first characters.",
        parsed=exp.Left,
    ),
    ScalarFunction(
        "right(text, n)",
        (text_argument, whole_argument),
        spark_types.STRING,
        f"right({{0}}, {_POSITIVE})",
        "The last characters.",
        parsed=exp.Right,
    ),
    ScalarFunction(
        "replace(text, part, other)",
        (text_argument, text_argument, text_argument),
        spark_types.STRING,
        "replace({0}, {1}, {2})",
        "The text with another in place of a part; without another, the part is deleted.",
        parsed=exp.Replace,
        defaults=(constant("", spark_types.STRING),),
    ),
    ScalarFunction(
        "instr(text, part)",
        (text_argument, text_argument),
        spark_types.INT,
        "CAST(instr({0}, {1}) AS INTEGER)",
        "Where a part begins in the text, from 1; 0 if it is not there.",
        parsed=exp.StrPosition,
    ),
)

NODES: dict[type[exp.Expr], NodeCompiler] = {
    **parsed_as_nodes(FUNCTIONS),
    exp.Trim: compile_trim,
    exp.Substring: compile_substring,
    exp.Pad: compile_pad,
    exp.SplitPart: compile_split_part,
    exp.Concat: compile_concat,
    exp.DPipe: compile_concat,
    exp.ConcatWs: compile_concat_ws,
    exp.Repeat: compile_repeat,
}
