"""Functions on strings. Positions and lengths count code points, as in Spark."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.host.caps import cap_reached, caps
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, only, refuse

SMALL = 10_000  # characters, or copies
_LONGEST = 2**31 - 1


def text_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a string; numbers and dates are written out."""
    return coerce(compiler.compile(node), spark_types.STRING, parent)


def whole_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as an INT."""
    return coerce(compiler.compile(node), spark_types.INT, parent)


def text_or_bytes(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a string or as BINARY."""
    term = compiler.compile(node)
    return term if term.type == spark_types.BINARY else coerce(term, spark_types.STRING, parent)


def compile_trim(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TRIM, LTRIM and RTRIM, of spaces or of a set of characters."""
    only(node, "this", "position", "expression")
    side = str(node.args.get("position") or "BOTH").upper()
    verb = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
    parts = [node.this] if node.expression is None else [node.this, node.expression]
    return call(verb, spark_types.STRING, *(text_argument(compiler, part, node) for part in parts))


def compile_substring(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SUBSTRING: from 1, from the end if negative, 0 as 1; a start before the text uses up the length."""
    only(node, "this", "start", "length")
    text = text_argument(compiler, node.this, node)
    if node.args.get("start") is None:
        raise refuse(node, "SUBSTRING has no start", "write SUBSTRING(text, start)")
    start = whole_argument(compiler, node.args["start"], node)
    size = node.args.get("length")
    length = constant(_LONGEST, spark_types.INT) if size is None else whole_argument(compiler, size, node)
    return call("substring", spark_types.STRING, text, start, length)


def compile_pad(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LPAD and RPAD; with nothing to pad with, they only cut."""
    only(node, "this", "expression", "fill_pattern", "is_left")
    fill = node.args.get("fill_pattern")
    verb = "lpad" if node.args.get("is_left") else "rpad"
    text, size = text_argument(compiler, node.this, node), whole_argument(compiler, node.expression, node)
    filler = constant(" ", spark_types.STRING) if fill is None else text_argument(compiler, fill, node)
    return _capped(verb, size, node, text, size, filler)


def compile_split_part(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SPLIT_PART; part 0 is an error, and nothing splits at an empty delimiter."""
    only(node, "this", "delimiter", "part_index")
    text, delimiter = (text_argument(compiler, node.args[name], node) for name in ("this", "delimiter"))
    part = whole_argument(compiler, node.args["part_index"], node)
    can_fail = not (part.literal and part.value)
    return call("split_part", spark_types.STRING, text, delimiter, part, can_fail=can_fail)


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
    return call("concat", spark_types.STRING, *terms, evaluation="all", nulls="propagated")


def compile_concat_ws(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CONCAT_WS, which leaves NULLs out."""
    only(node, "expressions", "safe", "coalesce", "flatten")
    compiled = [compiler.compile(part) for part in node.expressions]
    if any(spark_types.is_nested(term.type) for term in compiled):
        raise refuse(node, "CONCAT_WS of arrays is not supported")
    terms = [coerce(term, spark_types.STRING, node) for term in compiled]
    if not 2 <= len(terms) <= 9:
        raise refuse(node, "CONCAT_WS takes one to eight parts")
    return call("concat_ws", spark_types.STRING, *terms, evaluation="all")


def compile_repeat(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile REPEAT."""
    only(node, "this", "times")
    times = whole_argument(compiler, node.args["times"], node)
    text = text_argument(compiler, node.this, node)
    return _capped("repeat", times, node, text, times)


def _capped(name: str, times: Term, node: exp.Expr, *terms: Term) -> Term:
    """A function that makes a text of a length that the arguments give; beyond the cap it is refused or fails the row.

    A small literal count needs no guard: the text of a row is limited by what was read.
    """
    most = caps().max_value_length
    if times.literal and isinstance(times.value, int):
        if times.value > most:
            raise cap_reached(
                "a function would make too long a text", "max_value_length", f"{times.value:,} in {text_of(node)[:200]}"
            )
        if times.value <= SMALL:
            return call(name, spark_types.STRING, *terms)
    return call(name, spark_types.STRING, *terms, options=(most,), can_fail=True)


FUNCTIONS = (
    ScalarFunction(
        "ascii(text)",
        "The first code point; 0 for the empty text.",
        "ascii('A') = 65",
        (text_argument,),
        spark_types.INT,
        parsed=exp.Ascii,
    ),
    ScalarFunction(
        "concat(x, y)",
        "All texts in a row, like `x || y`; NULL if one is NULL.",
        "concat('a', 'b') = 'ab'",
        parsed=(exp.Concat, exp.DPipe),
        form=compile_concat,
    ),
    ScalarFunction(
        "concat_ws(separator, x, y)",
        "All texts that are not NULL, with a separator between them.",
        "concat_ws('-', 'a', NULL, 'b') = 'a-b'",
        parsed=exp.ConcatWs,
        form=compile_concat_ws,
    ),
    ScalarFunction(
        "contains(text, part)",
        "Whether the text contains another.",
        "contains('rejoinder', 'join')",
        (text_argument, text_argument),
        spark_types.BOOLEAN,
        parsed=exp.Contains,
    ),
    ScalarFunction(
        "endswith(text, part)",
        "Whether the text ends with another.",
        "endswith('rejoinder', 'er')",
        (text_argument, text_argument),
        spark_types.BOOLEAN,
        parsed=exp.EndsWith,
    ),
    ScalarFunction(
        "instr(text, part)",
        "The position of a part in the text, from 1; 0 if there is none.",
        "instr('rejoinder', 'join') = 3",
        (text_argument, text_argument),
        spark_types.INT,
        aliases=("locate(part, text)", "position(part, text)"),
        parsed=exp.StrPosition,
    ),
    ScalarFunction(
        "left(text, n)",
        "The first `n` characters.",
        "left('rejoinder', 2) = 're'",
        (text_argument, whole_argument),
        spark_types.STRING,
        parsed=exp.Left,
    ),
    ScalarFunction(
        "length(text)",
        "The number of characters of a text, or of bytes.",
        "length('abc') = 3",
        (text_or_bytes,),
        spark_types.INT,
        aliases=("len", "char_length", "character_length"),
        parsed=exp.Length,
    ),
    ScalarFunction(
        "lower(text)",
        "The text in lower case.",
        "lower('ABC') = 'abc'",
        (text_argument,),
        spark_types.STRING,
        aliases=("lcase",),
        parsed=exp.Lower,
        can_fail=True,
    ),
    ScalarFunction(
        "lpad(text, n, pad)",
        "The text, padded on the left or cut to `n` characters.",
        "lpad('7', 3, '0') = '007'",
        aliases=("rpad",),
        parsed=exp.Pad,
        form=compile_pad,
    ),
    ScalarFunction(
        "repeat(text, n)",
        "The text `n` times.",
        "repeat('ab', 2) = 'abab'",
        parsed=exp.Repeat,
        form=compile_repeat,
    ),
    ScalarFunction(
        "replace(text, part, other)",
        "The text with a part replaced; without `other`, the part is deleted.",
        "replace('abc', 'b', 'x') = 'axc'",
        (text_argument, text_argument, text_argument),
        spark_types.STRING,
        parsed=exp.Replace,
        defaults=(constant("", spark_types.STRING),),
    ),
    ScalarFunction(
        "reverse(text)",
        "The text from its end to its start.",
        "reverse('abc') = 'cba'",
        (text_argument,),
        spark_types.STRING,
        parsed=exp.Reverse,
    ),
    ScalarFunction(
        "right(text, n)",
        "The last `n` characters.",
        "right('rejoinder', 2) = 'er'",
        (text_argument, whole_argument),
        spark_types.STRING,
        parsed=exp.Right,
    ),
    ScalarFunction(
        "split_part(text, separator, n)",
        "The `n`-th part between separators, from 1, or from the end if negative.",
        "split_part('a,b,c', ',', 2) = 'b'",
        parsed=exp.SplitPart,
        form=compile_split_part,
    ),
    ScalarFunction(
        "startswith(text, part)",
        "Whether the text starts with another.",
        "startswith('rejoinder', 're')",
        (text_argument, text_argument),
        spark_types.BOOLEAN,
        parsed=exp.StartsWith,
    ),
    ScalarFunction(
        "substring(text, start, n)",
        "`n` characters from `start`, which counts from 1, or from the end if negative.",
        "substring('rejoinder', 3, 4) = 'join'",
        aliases=("substr",),
        parsed=exp.Substring,
        form=compile_substring,
    ),
    ScalarFunction(
        "translate(text, letters, others)",
        "The text with each of some letters replaced by another.",
        "translate('abc', 'ac', 'xy') = 'xby'",
        (text_argument, text_argument, text_argument),
        spark_types.STRING,
        parsed=exp.Translate,
    ),
    ScalarFunction(
        "trim(text)",
        "The text without spaces, or a set of characters, at both ends; at one end with ltrim and rtrim.",
        "trim('  a ') = 'a'",
        aliases=("ltrim", "rtrim"),
        parsed=exp.Trim,
        form=compile_trim,
    ),
    ScalarFunction(
        "upper(text)",
        "The text in upper case.",
        "upper('abc') = 'ABC'",
        (text_argument,),
        spark_types.STRING,
        aliases=("ucase",),
        parsed=exp.Upper,
        can_fail=True,
    ),
)
