"""Bytes of text, and text of bytes: hexadecimal digits, base64, digests, percent-encoding."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.numbers.bit_functions import integer_argument
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument, text_or_bytes
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

_SHA2 = {0: "sha256", 256: "sha256"}


def bytes_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as BINARY; text is taken in UTF-8."""
    return coerce(text_or_bytes(compiler, node, parent), spark_types.BINARY, parent)


def compile_sha2(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SHA2 with 256 bits, or 0, which means the same."""
    value, size = arguments(node, 2)
    bits = compiler.compile(size)
    if not bits.literal or bits.value not in _SHA2:
        raise refuse(node, "sha2 is supported with a literal 256 only", "write sha2(x, 256)")
    return call("sha2", spark_types.STRING, bytes_argument(compiler, value, node), nulls="propagated")


def compile_hex(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile HEX of an integer, a text or bytes."""
    (value,) = arguments(node, 1)
    term = compiler.compile(value)
    if term.type not in (spark_types.STRING, spark_types.BINARY):
        term = integer_argument(compiler, value, node)
    return call("hex", spark_types.STRING, term, nulls="propagated")


def _compile_utf8(name: str, rule: str) -> NodeCompiler:
    """Make the compiler of ENCODE or DECODE with the literal 'UTF-8'."""

    def compile_utf8(compiler: Compiler, node: exp.Expr) -> Term:
        if len(node.expressions) > 2:
            raise refuse(node, f"`{name}` with more than two arguments is not supported", "write CASE x WHEN … THEN …")
        value, charset = arguments(node, 2)
        named = compiler.compile(charset)
        if not named.literal or str(named.value).upper() not in ("UTF-8", "UTF8"):
            raise refuse(node, f"`{name}` is supported with a literal 'UTF-8' only")
        if rule == "bytes":
            return call(name, spark_types.STRING, bytes_argument(compiler, value, node), can_fail=True)
        return call(name, spark_types.BINARY, text_argument(compiler, value, node), nulls="propagated")

    return compile_utf8


def _digest(name: str, doc: str, example: str, aliases: tuple[str, ...] = ()) -> ScalarFunction:
    rule, kind = (bytes_argument,), spark_types.STRING
    return ScalarFunction(f"{name}(x)", doc, example, rule, kind, nulls="propagated", aliases=aliases)


def _same_text(name: str, doc: str, example: str) -> ScalarFunction:
    rule, kind = (text_argument,), spark_types.STRING
    return ScalarFunction(f"{name}(text)", doc, example, rule, kind, nulls="propagated")


FUNCTIONS = (
    ScalarFunction(
        "base64(x)", "Bytes as text in base64.", "base64('abc') = 'YWJj'", (bytes_argument,), spark_types.STRING,
        nulls="propagated",
    ),
    ScalarFunction(
        "bit_length(x)", "Eight times the number of bytes.", "bit_length('é') = 16", (text_or_bytes,), spark_types.INT,
        nulls="propagated",
    ),
    ScalarFunction(
        "crc32(x)", "The CRC-32 of bytes.", "crc32('abc') = 891568578", (bytes_argument,), spark_types.BIGINT,
        outside_duckdb=True, nulls="propagated",
    ),
    ScalarFunction(
        "decode(bytes, 'UTF-8')", "Bytes as text; bytes that are not UTF-8 fail.",
        "decode(encode('abc', 'UTF-8'), 'UTF-8') = 'abc'", form=_compile_utf8("decode", "bytes"),
    ),
    ScalarFunction(
        "encode(text, 'UTF-8')", "Text as bytes.", "length(encode('é', 'UTF-8')) = 2",
        form=_compile_utf8("encode", "text"),
    ),
    ScalarFunction("hex(x)", "An integer, text or bytes in hexadecimal digits.", "hex(255) = 'FF'", form=compile_hex),
    ScalarFunction(
        "is_valid_utf8(text)", "TRUE: text in a view is always valid.", "is_valid_utf8('a')", (text_argument,),
        spark_types.BOOLEAN, nulls="propagated",
    ),
    _same_text("make_valid_utf8", "The text: in a view it is always valid UTF-8.", "make_valid_utf8('a') = 'a'"),
    _digest("md5", "The MD5 digest, in hexadecimal digits.", "md5('') = 'd41d8cd98f00b204e9800998ecf8427e'"),
    ScalarFunction(
        "octet_length(x)", "The number of bytes.", "octet_length('é') = 2", (text_or_bytes,), spark_types.INT,
        nulls="propagated",
    ),
    _digest("sha1", "The SHA-1 digest.", "sha1('abc') = 'a9993e364706816aba3e25717850c26c9cd0d89d'", ("sha",)),
    ScalarFunction(
        "sha2(x, 256)", "The SHA-256 digest, in hexadecimal digits.", "left(sha2('abc', 256), 8) = 'ba7816bf'",
        form=compile_sha2,
    ),
    _same_text("try_validate_utf8", "The text: in a view it is always valid UTF-8.", "try_validate_utf8('a') = 'a'"),
    ScalarFunction(
        "unbase64(text)", "The bytes that a text in base64 stands for.", "unbase64('YWJj') = CAST('abc' AS BINARY)",
        (text_argument,), spark_types.BINARY, can_fail=True,
    ),
    ScalarFunction(
        "unhex(text)", "The bytes that hexadecimal digits stand for; NULL if there are other letters.",
        "unhex('616263') = CAST('abc' AS BINARY)", (text_argument,), spark_types.BINARY,
    ),
    ScalarFunction(
        "url_decode(text)", "A percent-encoded text, decoded.", "url_decode('a+b%21') = 'a b!'", (text_argument,),
        spark_types.STRING, can_fail=True,
    ),
    _same_text("url_encode", "The text, percent-encoded as a form does.", "url_encode('a b!') = 'a+b%21'"),
    _same_text("validate_utf8", "The text: in a view it is always valid UTF-8.", "validate_utf8('a') = 'a'"),
)  # fmt: skip
