"""The set operations that SQL can ask for, by clause. UNION is UNION ALL and DISTINCT."""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.plan.operations.operation import SetOperation
from rejoinder.plan.operations.union import Union

SET_OPERATIONS: Mapping[str, SetOperation] = {"UNION ALL": Union("UNION ALL")}
