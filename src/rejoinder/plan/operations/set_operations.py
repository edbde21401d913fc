"""The set operations that SQL can ask for, by clause. UNION is UNION ALL and DISTINCT."""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.plan.operations.intersect_except import IntersectExcept
from rejoinder.plan.operations.operation import SetOperation
from rejoinder.plan.operations.union import Union

_COUNTED = (
    IntersectExcept("intersect", all=False),
    IntersectExcept("intersect", all=True),
    IntersectExcept("except", all=False),
    IntersectExcept("except", all=True),
)
SET_OPERATIONS: Mapping[str, SetOperation] = {
    "UNION ALL": Union("UNION ALL"),
    **{operation.text: operation for operation in _COUNTED},
}
