"""Import the functions of the user by name, `module:function`.

The catalog stores the name. So every process that runs a task must be able to import the module; a lambda or a nested
function has no name that a worker could import.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rejoinder.errors import UnknownName, near_misses


def load(name: str) -> Callable[[Any], Any]:
    """Import a function by its name. Raises `UnknownName` if the module or the function does not exist."""
    module_name, _, path = name.partition(":")
    try:
        function: Any = importlib.import_module(module_name)
    except Exception as failure:  # an import runs the module, which may raise anything
        raise UnknownName(
            f"the module of function `{name}` cannot be imported",
            detail=f"{type(failure).__name__}: {failure}",
            hint="every process of the flow must be able to import it: install it, put its folder on PYTHONPATH, or "
            "pass it to Spark with sparkContext.addPyFile",
        ) from failure
    for part in path.split("."):
        if not hasattr(function, part):
            raise UnknownName(
                f"there is no function `{name}`",
                detail=f"`{module_name}` has no `{path}`",
                hint=near_misses(part, dir(function)) or "write it as module:function",
            )
        function = getattr(function, part)
        if isinstance(function, ModuleType):
            raise _foreign(name, function.__name__)
    home = getattr(function, "__module__", None) or module_name
    is_method = not isinstance(getattr(function, "__self__", None), ModuleType | None)
    is_plain = (inspect.isroutine(function) or inspect.isclass(function)) and not is_method
    if is_plain and home.partition(".")[0] != module_name.partition(".")[0]:
        raise _foreign(name, home)
    if not callable(function):
        raise UnknownName(
            f"`{name}` is not a function",
            detail=f"it has type {type(function).__name__}",
            hint="name a callable object",
        )
    return function  # type: ignore[no-any-return]


def _foreign(name: str, home: str) -> UnknownName:
    """Return the error for a function that an allowed module has imported: only its own functions are allowed."""
    return UnknownName(
        f"function `{name}` belongs to another module",
        detail=f"it is defined in `{home}`",
        hint="name it where it is defined, and allow that module; or wrap it in a function of your own",
    )
