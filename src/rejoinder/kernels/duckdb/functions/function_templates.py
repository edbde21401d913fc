"""The template of every function, by name, and of casts."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call, Cast
from rejoinder.kernels.duckdb.functions import (
    datetime_patterns,
    grouping_functions,
    logic,
    ranking,
    time_functions,
    windowing_functions,
)
from rejoinder.kernels.duckdb.functions.casts import cast_template
from rejoinder.kernels.duckdb.functions.nested import nested_functions
from rejoinder.kernels.duckdb.functions.numbers import arithmetic, math_functions
from rejoinder.kernels.duckdb.functions.templates import Rendering
from rejoinder.kernels.duckdb.functions.text import patterns, text_functions

DUCKDB_TEXT = "duckdb_text"
"""The function whose template is its only option (`text_expression`)."""

RENDERINGS: dict[str, Rendering] = {
    **arithmetic.RENDERINGS,
    **datetime_patterns.RENDERINGS,
    **logic.RENDERINGS,
    **math_functions.RENDERINGS,
    **nested_functions.RENDERINGS,
    **patterns.RENDERINGS,
    **ranking.RENDERINGS,
    **text_functions.RENDERINGS,
    **time_functions.RENDERINGS,
    **grouping_functions.RENDERINGS,
    **windowing_functions.RENDERINGS,
    DUCKDB_TEXT: lambda call: str(call.operation.options[0]),
}


def template_of(node: Call | Cast) -> str:
    """The template of a call or a cast, for the types that it has."""
    if isinstance(node, Cast):
        return cast_template(node)
    rendering = RENDERINGS[node.operation.name]
    return rendering if isinstance(rendering, str) else rendering(node)
