"""The public surface: which names are exported, and that options of public calls are keyword-only."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

import rejoinder
import rejoinder.core
import rejoinder.testing

PUBLIC = {
    rejoinder: [
        "Flow",
        "RejoinderError",
        "Relation",
        "Stream",
        "Table",
        "WindowedTable",
        "__version__",
        "cumulate",
        "hop",
        "session",
        "tumble",
    ],
    rejoinder.testing: ["Driver", "from_table"],
    rejoinder.core: [
        "AsyncTransform",
        "Call",
        "Delivery",
        "Expression",
        "Idle",
        "InputWatermarks",
        "JoinCondition",
        "LateRows",
        "Message",
        "Operator",
        "Rows",
        "SourceWatermarks",
        "StreamJoin",
        "Union",
        "Watermark",
        "WatermarkCoalescer",
        "WindowAggregate",
        "text_expression",
    ],
}
METHODS = {
    "Flow": """answer arrangements arrow backup catalog changelog changes close define delete drop epoch explain
        foreach_epoch idle insert is_running kafka keyed on_progress progress relation rename replace run
        sink sinks sql start stop stream subscribe table tvr udaf udf udtf vacuum view wait
        warm_up watermark watermarks why why_not""",
    "Driver": """arrangements catalog delete drop epoch foreach_epoch idle insert late load messages rename replace
        restart sink sql step stream subscribe table tvr udaf udf udtf vacuum watermark watermarks
        why why_not""",
}
# Arguments with a default that name what the call is about, rather than an option of it.
SUBJECTS = {
    "idle": {"partition"},
    "watermark": {"column", "partition"},
    "step": {"at"},
    "wait": {"seconds", "timeout"},
    "as_of": {"time"},
    "to": {"form"},
    "through": {"form"},
    "of": {"key"},
    "column": {"reason"},
    "text_expression": {"text"},
    "why": {"where"},
}


def modules() -> list[ModuleType]:
    return list(PUBLIC)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_a_module_exports_exactly_these_names(module: ModuleType) -> None:
    assert list(module.__all__) == PUBLIC[module]
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_package_lists_only_what_it_exports() -> None:
    assert dir(rejoinder) == sorted(rejoinder.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Flaw'"):
        _ = rejoinder.Flaw


@pytest.mark.parametrize(("owner", "name"), [(rejoinder, "Flow"), (rejoinder.testing, "Driver")])
def test_a_class_has_exactly_these_methods(owner: ModuleType, name: str) -> None:
    public = [method for method in dir(getattr(owner, name)) if not method.startswith("_")]
    assert public == METHODS[name].split()


def calls() -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the public functions and methods, and the constructors of a flow and a driver."""
    for module, names in PUBLIC.items():
        for name in names:
            value = getattr(module, name)
            if inspect.isfunction(value) or name in METHODS:
                yield name, inspect.signature(value)
            if not inspect.isclass(value) or issubclass(value, BaseException):
                continue
            for method in dir(value):
                call = getattr(value, method)
                if not method.startswith("_") and (inspect.isfunction(call) or inspect.ismethod(call)):
                    yield method, inspect.signature(call)


def test_options_are_keyword_only() -> None:
    checked = 0
    for name, signature in calls():
        for parameter in signature.parameters.values():
            is_optional = parameter.default is not parameter.empty
            if is_optional and parameter.name not in SUBJECTS.get(name, ()):
                assert parameter.kind is parameter.KEYWORD_ONLY, f"{name}({parameter.name}=…)"
                checked += 1
    assert checked > 50
