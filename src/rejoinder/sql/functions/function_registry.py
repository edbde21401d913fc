"""All functions and operators by family. Names, hints, compilation and the list in the documentation follow from it."""

from __future__ import annotations

import difflib

from sqlglot import exp

from rejoinder.sql.functions import cast_functions, conditional_functions, logic
from rejoinder.sql.functions.aggregates.aggregate_registry import AGGREGATES
from rejoinder.sql.functions.nested import array_functions, lambda_functions, map_functions, nested_functions
from rejoinder.sql.functions.numbers import (
    arithmetic,
    bit_functions,
    math_functions,
    number_formats,
    number_patterns,
    real_functions,
    try_arithmetic,
)
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.functions.text import (
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
from rejoinder.sql.functions.time import (
    calendar_functions,
    datetime_patterns,
    interval_functions,
    time_buckets,
    time_functions,
    time_of_day,
    windowing_functions,
    zone_functions,
)

FAMILIES: dict[str, tuple[ScalarFunction, ...]] = {
    "Comparisons and logic": (*logic.FUNCTIONS, *patterns.FUNCTIONS, *regex_functions.FUNCTIONS),
    "Conditions": conditional_functions.FUNCTIONS,
    "Casts": cast_functions.FUNCTIONS,
    "Numbers": (
        *arithmetic.FUNCTIONS,
        *math_functions.FUNCTIONS,
        *number_formats.FUNCTIONS,
        *number_patterns.FUNCTIONS,
        *try_arithmetic.FUNCTIONS,
    ),
    "Exponents and angles": real_functions.FUNCTIONS,
    "Bits": bit_functions.FUNCTIONS,
    "Text": (
        *text_functions.FUNCTIONS,
        *word_functions.FUNCTIONS,
        *letter_functions.FUNCTIONS,
        *printf_formats.FUNCTIONS,
        *url_functions.FUNCTIONS,
    ),
    "Bytes and digests": (*encodings.FUNCTIONS, *row_hashes.FUNCTIONS),
    "JSON and CSV": (*json_functions.FUNCTIONS, *json_schemas.FUNCTIONS),
    "Dates and times": (
        *time_functions.FUNCTIONS,
        *calendar_functions.FUNCTIONS,
        *datetime_patterns.FUNCTIONS,
        *time_buckets.FUNCTIONS,
        *time_of_day.FUNCTIONS,
        *interval_functions.FUNCTIONS,
    ),
    "Time zones": zone_functions.FUNCTIONS,
    "Windows of time": windowing_functions.FUNCTIONS,
    "Arrays, maps and structs": (*nested_functions.FUNCTIONS, *array_functions.FUNCTIONS, *map_functions.FUNCTIONS),
    "Lambdas": lambda_functions.FUNCTIONS,
}
"""Functions by category, in the order of the documentation."""

FUNCTIONS = tuple(function for family in FAMILIES.values() for function in family)
BY_CLASS: dict[type[exp.Expr], ScalarFunction] = {
    node_class: function for function in FUNCTIONS for node_class in function.node_classes
}
BY_NAME: dict[str, ScalarFunction] = {
    name: function for function in FUNCTIONS if function.is_called_by_name for name in function.signatures
}
SIGNATURES: dict[str, str] = {
    **{name: signature for aggregate in AGGREGATES for name, signature in aggregate.signatures.items()},
    **{name: signature for function in FUNCTIONS for name, signature in function.signatures.items()},
}
"""Signatures by name, in lower case."""


def meant_functions(name: str) -> str:
    """A hint with the functions whose names are close to a name; empty if none is.

    >>> meant_functions("lenght")
    'did you mean `length(text)`?'
    """
    word = name.lower()
    close = difflib.get_close_matches(word, SIGNATURES, n=2, cutoff=0.7)
    close = close or difflib.get_close_matches(word, SIGNATURES, n=1, cutoff=0.6)
    return f"did you mean {' or '.join(f'`{SIGNATURES[match]}`' for match in close)}?" if close else ""
