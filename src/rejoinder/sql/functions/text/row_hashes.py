"""Hashes of rows: the values that Spark computes, of several arguments one after the other."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse


def _compile_hash(name: str, kind: pa.DataType) -> NodeCompiler:
    """Make the compiler of HASH or XXHASH64 of plain values."""

    def compile_hash(compiler: Compiler, node: exp.Expr) -> Term:
        if not node.expressions:
            raise mismatch(node, f"`{name}` takes one argument or more")
        terms = [compiler.compile(part) for part in node.expressions]
        for term in terms:
            is_wide = spark_types.is_decimal(term.type) and term.type.precision > 18
            is_unknown = term.type == spark_types.TIME or spark_types.is_interval(term.type)
            if spark_types.is_nested(term.type) or is_wide or is_unknown or term.is_null:
                raise refuse(node, f"`{name}` of {spark_types.spark_name(term.type)} is not supported", "CAST it")
        return call(name, kind, *terms, evaluation="all", nulls="never")

    return compile_hash


FUNCTIONS = (
    ScalarFunction(
        "hash(x, y)",
        "The hash of one or more values (Murmur3).",
        "hash('Spark') = 228093765",
        outside_duckdb=True,
        form=_compile_hash("hash", spark_types.INT),
    ),
    ScalarFunction(
        "xxhash64(x, y)",
        "The hash of one or more values (xxHash64).",
        "xxhash64('Spark') = -4294468057691064905",
        outside_duckdb=True,
        form=_compile_hash("xxhash64", spark_types.BIGINT),
    ),
)
