"""Tests that a table of requirements names: each exists, is run, and asserts something."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

DEPTH = 3


def check_named_test(requirement: str, name: str, modules: Sequence[ModuleType]) -> None:
    """Fail unless `name` is run for a requirement: `path::function`, a test of the modules, or a case that one plays.

    A test of the modules names the requirement in its docstring.
    """
    path, _, function = name.rpartition("::")
    if path:
        tests: list[Any] = [getattr(import_module(path.removesuffix(".py").replace("/", ".")), function, None)]
        assert function.startswith("test_") or path.startswith("benchmarks/"), f"{requirement}: {name} is not run"
    else:
        local = [test for module in modules for test in _tests(module)]
        tests = [test for test in local if test.__name__ == name or _plays(test, name)]
        named = [test for test in tests if test.__name__ == name]
        assert all(requirement in (test.__doc__ or "") for test in named), f"{name} does not name {requirement}"
    found = [test for test in tests if isinstance(test, FunctionType)]
    assert any(can_fail(test) for test in found), f"{requirement}: no test {name}, or none that asserts anything"


def can_fail(test: FunctionType, depth: int = DEPTH) -> bool:
    """Whether a test asserts something, by itself or in functions and classes of the tests that it uses."""
    if any(mark.name == "skip" for mark in getattr(test, "pytestmark", [])):
        return False
    text = inspect.getsource(test)
    if "assert " in text or "raises(" in text:
        return True
    used = (test.__globals__.get(name) for name in test.__code__.co_names)
    functions = [f for each in used for f in _functions(each) if f.__module__.startswith(("tests.", "benchmarks."))]
    return depth > 0 and any(can_fail(function, depth - 1) for function in functions)


def _functions(used: Any) -> list[FunctionType]:
    members = vars(used).values() if inspect.isclass(used) else [used]
    return [member for member in members if isinstance(member, FunctionType)]


def _tests(module: ModuleType) -> Iterator[FunctionType]:
    for name, value in vars(module).items():
        if name.startswith("test_") and isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value


def _plays(test: FunctionType, case: str) -> bool:
    """Whether a test plays a case: it is a parameter of the test, or the test names it."""
    listed = [mark.args[1] for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    parameters = [value for values in listed for value in values]
    return case in test.__code__.co_consts or any(isinstance(p, dict) and p.get("id") == case for p in parameters)
