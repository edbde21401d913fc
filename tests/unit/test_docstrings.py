"""The examples in the docstrings of the package are run, and every public module says what it is for."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import rejoinder

# Modules that start a JVM when their examples run are tested with Spark.
WITH_SPARK = ("rejoinder.api", "rejoinder.cli", "rejoinder.exchange", "rejoinder.engine.executors.spark_executor")
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(rejoinder.__path__, "rejoinder.")
    if not info.name.startswith(WITH_SPARK)
)


def examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in examples(module):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_public_things_say_what_they_do(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    silent = [
        thing
        for thing, value in vars(module).items()
        if not thing.startswith("_")
        and inspect.isfunction(value)
        and value.__module__ == name
        and not inspect.getdoc(value)
    ]
    assert not silent, f"{name}: {', '.join(silent)} without a docstring"


def test_there_are_examples_to_run() -> None:
    found = [name for name in MODULES if examples(importlib.import_module(name))]
    assert {"rejoinder.testing.driver", "rejoinder.testing.tables", "rejoinder.errors"} <= set(found)
