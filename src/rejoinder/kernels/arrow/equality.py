"""Equality as IS NOT DISTINCT FROM: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0, at any depth of nesting.

Cost: a fixed number of Arrow passes per column and level of nesting. Only `identity` loops over rows, the few whose
hashes collide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64
from rejoinder.kernels.arrow.hashing import Mask


def not_distinct(left: pa.Array, right: pa.Array) -> Mask:
    """Compare two columns of one type row by row, like IS NOT DISTINCT FROM.

    >>> not_distinct(pa.array([[1], None, []]), pa.array([[1], None, [None]]))
    array([ True,  True, False])
    """
    kind = left.type
    if pa.types.is_struct(kind):
        equal = np.ones(len(left), bool)
        for i in range(kind.num_fields):
            equal &= not_distinct(left.field(i), right.field(i))
    elif pa.types.is_map(kind):
        keys, items = (left.keys, right.keys), (left.items, right.items)
        bounds = _bounds(left), _bounds(right)
        equal = _equal_lists(*bounds, *keys) & _equal_lists(*bounds, *items)
    elif pa.types.is_list(kind):
        equal = _equal_lists(_bounds(left), _bounds(right), left.values, right.values)
    else:
        equal = np.asarray(pc.fill_null(pc.equal(left, right), False))
        if pa.types.is_floating(kind):
            equal = equal | np.asarray(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    if not left.null_count and not right.null_count:
        return equal
    missing = np.asarray(left.is_null()), np.asarray(right.is_null())
    return np.where(missing[0] | missing[1], missing[0] & missing[1], equal)


def _bounds(lists: pa.Array) -> Int64:
    """Return the offsets of lists in their values; a NULL may have any length."""
    return np.asarray(lists.offsets).astype(np.int64)


def _equal_lists(left: Int64, right: Int64, left_values: pa.Array, right_values: pa.Array) -> Mask:
    """Return a mask of the lists, by their offsets in the values, that have equal elements at equal positions."""
    count = np.diff(left)
    equal: Mask = count == np.diff(right)
    count = np.where(equal, count, 0)
    owner = np.repeat(np.arange(len(count)), count)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    if len(owner):
        ours, theirs = pa.array(left[:-1][owner] + position), pa.array(right[:-1][owner] + position)
        equal[owner[~not_distinct(left_values.take(ours), right_values.take(theirs))]] = False
    return equal


def identity(value: Any) -> str:
    """Return a text that is equal for two Python values of a column exactly if they are equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {identity(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(identity, value)) + "]"
    return repr(value)
