"""Padding: the value of an expression on the row of NULLs that replaces a missing match."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.errors import EvaluationError
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.plan.blocks.normal_form import Input


def is_null_on_padding(expression: Expression, each: Input) -> bool:
    """Return whether an expression over one input is NULL on its padding, so that it equals nothing.

    `COALESCE(y, 1)` is not NULL, and padding can match by it.
    """
    if expression.is_column:
        return True
    value = _on_padding(expression, each)
    return value is not None and not value.is_valid


def is_true_on_padding(expression: Expression, each: Input) -> bool:
    """Return whether a condition over one input may be true on its padding: `y > 1` is not, `y IS NULL` is."""
    value = _on_padding(expression, each)
    return value is None or value.as_py() is True


def _on_padding(expression: Expression, each: Input) -> pa.Scalar | None:
    """Return the value of an expression on the padding of an input; None if it fails."""
    names = dict(each.columns)
    return value_on_nulls(expression, {i: each.type_of(names[i]) for i in expression.columns})


def value_on_nulls(expression: Expression, types: Mapping[str, pa.DataType]) -> pa.Scalar | None:
    """What an expression is where all its columns are NULL; None: it fails."""
    row = pa.table({"": pa.nulls(1), **{i: pa.nulls(1, types[i]) for i in expression.columns}})
    try:
        return project(row, [("value", expression)]).column("value")[0]
    except EvaluationError:
        return None
