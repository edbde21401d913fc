"""Calls of the user's functions: DuckDB calls Python by a name that follows from the function and its types.

A process that renders a call knows the function from then on, so no list of functions is sent to it.
"""

from __future__ import annotations

import hashlib
import re

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.arrow_functions import ArrowFunction
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, places
from rejoinder.kernels.user_functions.scalar_calls import ScalarCalls

USER_FUNCTION = "user_function"
_NAME = re.compile(r"user_function_[0-9a-f]{16}")
_known: dict[str, ArrowFunction] = {}


def functions_in(text: str) -> list[ArrowFunction]:
    """Return the functions of the user that a text calls."""
    return [_known[name] for name in dict.fromkeys(_NAME.findall(text))]


def _rendered(call: Call) -> str:
    function = call.operation.user
    assert function is not None
    identity = f"{function.text}\x1f{function.identity}"
    name = f"{USER_FUNCTION}_{hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()}"
    if name not in _known:
        calls = ScalarCalls(function)
        _known[name] = ArrowFunction(name, calls, calls.result, makes_nulls=True)
    value, bind = bound(f"{name}({places(len(call.parts)) or 'TRUE'})")
    return bind(f"CASE WHEN {value}.failure IS NULL THEN {value}.answer ELSE {{!={value}.failure}} END")


RENDERINGS: dict[str, Rendering] = {USER_FUNCTION: _rendered}
