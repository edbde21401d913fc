"""Padding: what an expression makes of the row of NULLs that stands for a partner that is not there."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.errors import EvaluationError
from rejoinder.ir.expression import Expression
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.plan.blocks.normal_form import Input


def is_null_on_padding(expression: Expression, each: Input) -> bool:
    """Say whether an expression over one input is NULL where the input is padded: then it equals nothing there.

    `COALESCE(y, 1)` is not, and a row without a partner can match by it.
    """
    if expression.is_column:
        return True
    found = _on_padding(expression, each)
    return found is not None and not found.is_valid


def is_true_on_padding(expression: Expression, each: Input) -> bool:
    """Say whether a condition over one input may let its padding through: `y > 1` does not, `y IS NULL` does."""
    found = _on_padding(expression, each)
    return found is None or found.as_py() is True


def _on_padding(expression: Expression, each: Input) -> pa.Scalar | None:
    """What an expression is where the input is padded; None: it fails."""
    names = dict(each.columns)
    return value_on_nulls(expression, {i: each.type_of(names[i]) for i in expression.columns})


def value_on_nulls(expression: Expression, types: Mapping[str, pa.DataType]) -> pa.Scalar | None:
    """What an expression is where all its columns are NULL; None: it fails."""
    row = pa.table({"": pa.nulls(1), **{i: pa.nulls(1, types[i]) for i in expression.columns}})
    try:
        return project(row, [("value", expression)]).column("value")[0]
    except EvaluationError:
        return None
