"""The template of every function, by name, and of casts."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call, Cast
from rejoinder.kernels.duckdb.functions import (
    aggregate_results,
    grouping_functions,
    logic,
    ranking,
    user_calls,
)
from rejoinder.kernels.duckdb.functions.casts import cast_template
from rejoinder.kernels.duckdb.functions.nested import array_functions, lambda_functions, map_functions, nested_functions
from rejoinder.kernels.duckdb.functions.numbers import (
    arithmetic,
    bit_functions,
    math_functions,
    number_formats,
    number_patterns,
    real_functions,
    try_arithmetic,
)
from rejoinder.kernels.duckdb.functions.templates import Rendering
from rejoinder.kernels.duckdb.functions.text import (
    encodings,
    json_functions,
    json_schemas,
    letter_functions,
    patterns,
    printf_formats,
    regex_functions,
    row_hashes,
    text_functions,
    url_functions,
    word_functions,
)
from rejoinder.kernels.duckdb.functions.time import (
    calendar_functions,
    datetime_patterns,
    interval_functions,
    time_buckets,
    time_functions,
    time_of_day,
    windowing_functions,
    zone_functions,
)

DUCKDB_TEXT = "duckdb_text"
"""The function whose template is its only option (`text_expression`)."""

RENDERINGS: dict[str, Rendering] = {
    **aggregate_results.RENDERINGS,
    **array_functions.RENDERINGS,
    **lambda_functions.RENDERINGS,
    **map_functions.RENDERINGS,
    **arithmetic.RENDERINGS,
    **calendar_functions.RENDERINGS,
    **letter_functions.RENDERINGS,
    **regex_functions.RENDERINGS,
    **row_hashes.RENDERINGS,
    **bit_functions.RENDERINGS,
    **datetime_patterns.RENDERINGS,
    **encodings.RENDERINGS,
    **json_functions.RENDERINGS,
    **json_schemas.RENDERINGS,
    **logic.RENDERINGS,
    **math_functions.RENDERINGS,
    **nested_functions.RENDERINGS,
    **number_formats.RENDERINGS,
    **number_patterns.RENDERINGS,
    **patterns.RENDERINGS,
    **printf_formats.RENDERINGS,
    **ranking.RENDERINGS,
    **real_functions.RENDERINGS,
    **text_functions.RENDERINGS,
    **time_buckets.RENDERINGS,
    **time_functions.RENDERINGS,
    **time_of_day.RENDERINGS,
    **interval_functions.RENDERINGS,
    **try_arithmetic.RENDERINGS,
    **url_functions.RENDERINGS,
    **word_functions.RENDERINGS,
    **grouping_functions.RENDERINGS,
    **user_calls.RENDERINGS,
    **windowing_functions.RENDERINGS,
    **zone_functions.RENDERINGS,
    DUCKDB_TEXT: lambda call: str(call.operation.options[0]),
}


def template_of(node: Call | Cast) -> str:
    """The template of a call or a cast, for the types that it has."""
    if isinstance(node, Cast):
        return cast_template(node)
    rendering = RENDERINGS[node.operation.name]
    return rendering if isinstance(rendering, str) else rendering(node)
