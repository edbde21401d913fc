"""Functions that look at each letter of a text, or at the type of a value."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.encodings import bytes_argument
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

_BINARY_FORMATS = {"HEX": "to_binary", "UTF-8": "encode", "UTF8": "encode", "BASE64": "unbase64"}


def compile_typeof(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TYPEOF, which does not look at the value."""
    (value,) = arguments(node, 1)
    term = compiler.compile(value)
    name = "void" if term.is_null else spark_types.spark_name(term.type)
    return call("typeof", spark_types.STRING, term, options=(name,), evaluation="lazy", nulls="never")


def _compile_to_binary(*, is_try: bool) -> NodeCompiler:
    """Make the compiler of TO_BINARY or TRY_TO_BINARY, with the literal 'hex', 'utf-8' or 'base64'."""

    def compile_to_binary(compiler: Compiler, node: exp.Expr) -> Term:
        text, *rest = arguments(node, 1, 2)
        form = compiler.compile(rest[0]).value if rest else "hex"
        name = _BINARY_FORMATS.get(str(form).upper())
        if name is None or (is_try and name == "unbase64"):
            raise refuse(node, f"this format of `{node.name}` is not supported", "write 'hex' or 'utf-8'")
        term = text_argument(compiler, text, node)
        if is_try and name == "to_binary":
            return call("unhex", spark_types.BINARY, term)
        return call(name, spark_types.BINARY, term, can_fail=name != "encode")

    return compile_to_binary


def _long(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return coerce(compiler.compile(node), spark_types.BIGINT, parent)


FUNCTIONS = (
    ScalarFunction(
        "bitmap_bit_position(n)", "The bit of a number in its bitmap of 32,768 bits.", "bitmap_bit_position(5) = 4",
        (_long,), spark_types.BIGINT, nulls="propagated",
    ),
    ScalarFunction(
        "bitmap_bucket_number(n)", "The number of the bitmap that a number is in.", "bitmap_bucket_number(5) = 1",
        (_long,), spark_types.BIGINT, nulls="propagated",
    ),
    ScalarFunction(
        "bitmap_count(bytes)", "How many bits of some bytes are set.", "bitmap_count(unhex('0F')) = 4",
        (bytes_argument,), spark_types.BIGINT, nulls="propagated",
    ),
    ScalarFunction(
        "initcap(text)", "The text in lower case, with a capital at the start of each word between spaces.",
        "initcap('hELLO world') = 'Hello World'", (text_argument,), spark_types.STRING, nulls="propagated",
        can_fail=True,
    ),
    ScalarFunction(
        "mask(text)", "The text with X for each upper letter, x for each lower one, and n for each digit.",
        "mask('Ab-1') = 'Xx-n'", (text_argument,), spark_types.STRING, nulls="propagated",
    ),
    ScalarFunction(
        "soundex(text)", "The Soundex code of a text that starts with a letter of ASCII; other texts as they are.",
        "soundex('Miller') = 'M460'", (text_argument,), spark_types.STRING, nulls="propagated",
    ),
    ScalarFunction(
        "to_binary(text, format)", "The bytes of a text in 'hex', 'utf-8' or 'base64'.",
        "to_binary('616263') = CAST('abc' AS BINARY)", form=_compile_to_binary(is_try=False),
    ),
    ScalarFunction(
        "try_to_binary(text, format)", "The bytes of a text in 'hex' or 'utf-8'; NULL if it has other letters.",
        "try_to_binary('xyz', 'hex') IS NULL", form=_compile_to_binary(is_try=True),
    ),
    ScalarFunction(
        "try_url_decode(text)", "A percent-encoded text, decoded; NULL if it is none.",
        "try_url_decode('%') IS NULL", (text_argument,), spark_types.STRING, can_fail=True,
    ),
    ScalarFunction("typeof(x)", "The name of the type.", "typeof(1) = 'int'", form=compile_typeof),
)  # fmt: skip
