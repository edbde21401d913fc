"""Parts of a URL."""

from __future__ import annotations

import re

from sqlglot import exp

from rejoinder.kernels.duckdb.functions.text.url_functions import PARTS
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

_KEY = re.compile(r"[A-Za-z0-9_\-]+")


def _compile_part(name: str) -> NodeCompiler:
    """Make the compiler of PARSE_URL or TRY_PARSE_URL with a literal part."""

    def compile_part(compiler: Compiler, node: exp.Expr) -> Term:
        text, *rest = arguments(node, 2, 3)
        url = text_argument(compiler, text, node)
        terms = [compiler.compile(part) for part in rest]
        if any(not term.literal or term.type != spark_types.STRING for term in terms):
            raise refuse(node, f"`{name}` takes the part and the key as literals only", f"one of {', '.join(PARTS)}")
        part, *keys = (term.value for term in terms)
        if None in (part, *keys) or (keys and part != "QUERY"):
            return constant(None, spark_types.STRING)
        if keys and not _KEY.fullmatch(keys[0]):
            raise refuse(node, f"the key '{keys[0]}' is a regular expression to Spark", "use letters, digits, _ and -")
        is_strict = name == "parse_url"
        return call(name, spark_types.STRING, url, options=(part, *keys), can_fail=is_strict)

    return compile_part


FUNCTIONS = (
    ScalarFunction(
        "parse_url(url, part, key)", "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO; "
        "with a key, its value in the query.", "parse_url('http://a.org/b?c=1', 'QUERY', 'c') = '1'",
        form=_compile_part("parse_url"),
    ),
    ScalarFunction(
        "try_parse_url(url, part, key)", "As `parse_url`; NULL if the text is not a URL.",
        "try_parse_url('a b', 'HOST') IS NULL", form=_compile_part("try_parse_url"),
    ),
)  # fmt: skip
