"""The values of all calls of a step, and the error of a sum that overflows."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import EvaluationError
from rejoinder.kernels.windows.calls import Evaluation, SumTooLargeError
from rejoinder.plan.physical.window_steps import FirstRows, Window


def evaluate_calls(step: Window | FirstRows, evaluation: Evaluation) -> dict[str, pa.Array]:
    """Return the columns of the calls of a step. Raises `EvaluationError` if a sum overflows."""
    values: dict[str, pa.Array] = {}
    for name, call in step.calls:
        try:
            values |= evaluation.values(name, call)
        except SumTooLargeError:
            views = " and ".join(f"`{view}`" for view in step.views)
            raise EvaluationError(
                f"a sum over a window overflows in view {views}",
                detail=f"it does not fit in {call.type}",
                hint="sum a wider type: CAST the argument to DECIMAL(38, 0) or to DOUBLE",
            ) from None
    return values
