"""Which Python functions a flow may import and call: those that the program allowed, never one that a state names.

Views are stored as text, and ENRICH names a function in it. A state that somebody changed could name any function that
can be imported, so nothing is imported unless this process allowed it: `Flow(functions=…)`, `Driver(functions=…)`,
`--functions`, or `relation.enrich(function)`. The list belongs to the process, as the functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rejoinder.errors import InvalidSql, Unsupported, near_misses

_allowed: set[str] = set()


def allow_functions(functions: Iterable[Callable[..., object] | str]) -> None:
    """Allow functions: as themselves, as `module:function`, or all of a module or package by its name.

    >>> allow_functions(["shop.rates"])
    >>> is_allowed("shop.rates:lookup"), is_allowed("shop.rates.eu:lookup"), is_allowed("os:system")
    (True, True, False)
    """
    if isinstance(functions, str):
        raise InvalidSql("`functions` is a list of names", detail=repr(functions), hint=f"give [{functions!r}]")
    for each in functions:
        name = each if isinstance(each, str) else getattr(each, "__qualname__", "")
        if not name:
            raise InvalidSql(f"`{each!r}` has no name of its own", hint="allow its module: functions=['module']")
        _allowed.add(name if isinstance(each, str) else f"{each.__module__}:{name}")


def is_allowed(name: str) -> bool:
    """Whether a function, given as `module:function`, was allowed, or its module, or a package around that."""
    module = name.partition(":")[0].split(".")
    packages = (".".join(module[:length]) for length in range(1, len(module) + 1))
    return name in _allowed or any(package in _allowed for package in packages)


def refuse_others(functions: Iterable[str]) -> None:
    """Refuse a function that was not allowed. Nothing is imported for it."""
    for name in sorted(functions):
        if not is_allowed(name):
            module = name.partition(":")[0]
            raise Unsupported(
                f"function `{name}` is not allowed in this process",
                detail=f"allowed: {', '.join(sorted(_allowed)) or 'none'}",
                hint=(near_misses(name, _allowed) + " " if near_misses(name, _allowed) else "")
                + f'allow its module if you trust it: functions=["{module}"] of the flow, or --functions {module}',
            )
