"""Accumulators that are linear in the diffs: counts, exact sums, moments and bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import EvaluationError
from rejoinder.ir.aggregate_calls import Function
from rejoinder.kernels.arrow.columns import HASH, Int64, diffs, take, without
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.sums import moments
from rejoinder.kernels.sums.accumulate import count_rows, float_values, sum_exact
from rejoinder.kernels.sums.bit_counts import bits_in_all, bits_in_any, count_bits, odd_bits
from rejoinder.kernels.sums.float_sums import Floats, sum_floats
from rejoinder.kernels.sums.sparse_counts import KEPT
from rejoinder.plan.blocks.accumulators import BITS, Accumulator
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.runtime.steps.groups.group_changes import GroupChange, GroupsBefore

_MOMENTS: dict[Function, Callable[[Int64, Sequence[pa.Array]], tuple[Floats, Mask]]] = {
    "m2": moments.second_moment,
    "comoment": moments.comoment,
    "skewness": moments.skewness,
    "kurtosis": moments.kurtosis,
}


def summed(
    delta: GroupChange,
    old: GroupsBefore,
    accumulator: Accumulator,
    step: Aggregate,
    columns: Mapping[str, pa.Array],
) -> dict[str, pa.Array]:
    """Return the new columns of an accumulator; `columns` has those before it, with the count that it needs.

    Raises `EvaluationError` if a sum overflows.
    """
    name, values, multiplicity = accumulator.name, delta.column(accumulator.argument), diffs(delta.rows)
    kept = [old.column(hidden).cast(KEPT) for hidden in accumulator.hidden]
    if accumulator.count is not None:
        count = np.asarray(columns[accumulator.count])
        if accumulator.function in BITS:
            return _bits(accumulator, count, kept[0], delta)
        sums = _power_sums(kept, values, multiplicity, delta.starts)
        moment, is_known = _MOMENTS[accumulator.function](count, sums)
        return {name: pa.array(moment, mask=~is_known), **dict(zip(accumulator.hidden, sums, strict=True))}
    before = old.column(name)
    if accumulator.function == "count":
        change = count_rows(values, multiplicity, delta.starts)
        return {name: pa.array(np.asarray(pc.fill_null(before, 0)) + change)}
    if kept:
        numbers, valid = float_values(values)
        multiplicity = multiplicity if valid is None else np.where(valid, multiplicity, 0)
        digits, totals = sum_floats(kept[0], numbers, multiplicity, delta.starts)
        return {name: pa.array(totals), **dict.fromkeys(accumulator.hidden, digits)}
    result, too_large = sum_exact(before, values, multiplicity, delta.starts)
    if too_large.any():
        raise _overflow(delta, accumulator, step, int(np.flatnonzero(too_large)[0]))
    return {name: result}


def _power_sums(kept: list[pa.Array], values: pa.Array, multiplicity: Int64, starts: Int64) -> list[pa.Array]:
    """Add values, or structs of two numbers, to the sums of a moment."""
    if values.null_count:
        multiplicity = np.where(np.asarray(values.is_valid()), multiplicity, 0)
    if not pa.types.is_struct(values.type):
        return moments.sum_powers(kept, float_values(values)[0], multiplicity, starts)
    left, right = (float_values(part)[0] for part in values.flatten())
    return moments.sum_products(kept, (left, right), multiplicity, starts)


def _bits(accumulator: Accumulator, rows: Int64, kept: pa.Array, delta: GroupChange) -> dict[str, pa.Array]:
    values = delta.column(accumulator.argument)
    state, counts = count_bits(kept, values, diffs(delta.rows), delta.starts)
    match accumulator.function:
        case "bit_and":
            number = bits_in_all(counts, rows)
        case "bit_or":
            number = bits_in_any(counts)
        case _:
            number = odd_bits(counts)
    value = pa.array(number, mask=rows == 0).cast(accumulator.type)
    return {accumulator.name: value, **dict.fromkeys(accumulator.hidden, state)}


def _overflow(delta: GroupChange, accumulator: Accumulator, step: Aggregate, group: int) -> EvaluationError:
    key = without(take(delta.keys, np.array([group])), [HASH]).to_pylist()[0]
    views = " and ".join(f"`{view}`" for view in step.views)
    return EvaluationError(
        f"`{accumulator.text}` overflows in view {views}",
        detail=f"{'a group' if key else 'the whole relation'}: the sum does not fit in {accumulator.type}",
        values=f"group {tuple(key.values())!r}" if key else None,
        hint="sum a wider type: CAST the argument to DECIMAL(38, 0) or to DOUBLE",
    )
