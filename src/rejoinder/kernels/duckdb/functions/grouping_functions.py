"""Numbers of grouping sets: a list of them, and what a number says about each grouping expression."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering


def _numbers(call: Call) -> str:
    return f"[{', '.join(f'CAST({number} AS BIGINT)' for number in call.operation.options)}]"


def _with_option(template: str) -> Rendering:
    return lambda call: template.replace("OPTION", str(call.operation.options[0]))


RENDERINGS: dict[str, Rendering] = {
    "grouping": _with_option("CAST(({0} >> OPTION) & 1 AS TINYINT)"),
    "grouping_id": _with_option("({0} & OPTION)"),
    "grouping_sets": _numbers,
    "is_in_set": _with_option("((({0} >> OPTION) & 1) = 0)"),
}
