"""Declare functions from Python, as `spark.udf.register` does: `udf`, `udtf` and `udaf` of a flow or a test driver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rejoinder.engine.definitions.definition_statements import has_same
from rejoinder.errors import InvalidSql, PlanningError, Unsupported
from rejoinder.ir.allowed_functions import allow_functions
from rejoinder.ir.catalog import Catalog
from rejoinder.ir.function_reference import name_of
from rejoinder.ir.user_functions import FunctionKind
from rejoinder.sql.statements.function_statements import CreateFunction, make_function
from rejoinder.sql.types.spark_types import parse_type

Columns = str | Mapping[str, str]
"""Names and types: `"amount DOUBLE, country STRING"`, or a dict of them."""


class Registration:
    """Declares functions of one kind."""

    def __init__(self, kind: FunctionKind, catalog: Callable[[], Catalog], define: Callable[[CreateFunction], Any]):
        self._kind, self._catalog, self._define = kind, catalog, define

    def register(
        self,
        name: str,
        function: Callable[..., object] | str,
        returns: Columns,
        *,
        arguments: Columns = "",
        vectorized: bool = False,
        timeout: float | None = None,
        version: str = "",
        replace: bool = False,
    ) -> None:
        """Declare a function in Python by name, and allow it in this process: CREATE FUNCTION.

        `function` is a function at the top of a module, or its name, `module:function`; of `udaf` and `udtf`, a class.
        `returns` is a type, or the columns of a table function. With `vectorized`, a call gets and returns arrays of
        Arrow. A call that takes longer than `timeout` seconds fails the epoch. An equal declaration has no effect;
        another one of that name is an error, or is replaced with `replace`, unless a view calls the function.
        Raises a `PlanningError`.
        """
        if inspect.iscoroutinefunction(function):
            raise Unsupported(
                f"function `{name}` is asynchronous",
                detail=name_of(function),
                hint="use a plain function here, or call it with ENRICH",
            )
        reference = name_of(function)
        allow_functions([reference])
        options = {"vectorized": "true"} if vectorized else {}
        options |= {"timeout": f"{timeout:f} seconds"} if timeout is not None else {}
        options |= {"version": version} if version else {}
        result = pa.struct(list(_schema(returns, name))) if self._kind == "table" else _type(returns, name)
        declared = make_function(name, _schema(arguments, name), result, reference, self._kind, options)
        statement = CreateFunction(declared, or_replace=replace)
        if not has_same(self._catalog(), statement):
            self._define(statement)


def _type(text: Columns, name: str) -> pa.DataType:
    if not isinstance(text, str):
        raise InvalidSql(f"function `{name}` returns one type", detail=repr(text), hint='as in returns="DOUBLE"')
    return parse_type(text)


def _schema(columns: Columns, name: str) -> pa.Schema:
    listed = columns if isinstance(columns, str) else ", ".join(f"`{own}` {kind}" for own, kind in columns.items())
    if not listed.strip():
        return pa.schema([])
    try:
        return pa.schema(list(parse_type(f"STRUCT<{listed}>")))
    except PlanningError as failure:
        hint = failure.hint or 'names and types: "amount DOUBLE, country STRING"'
        raise type(failure)(failure.fact, detail=f"function `{name}`: {listed}", hint=hint) from failure


class Functions:
    """The part of a flow, or of a test driver, that declares functions."""

    @property
    def udf(self) -> Registration:
        """Declare scalar functions: `flow.udf.register("tax", shop.tax, "DOUBLE", arguments="amount DOUBLE")`."""
        return self._registration("scalar")

    @property
    def udtf(self) -> Registration:
        """Declare table functions, which make several rows of one."""
        return self._registration("table")

    @property
    def udaf(self) -> Registration:
        """Declare aggregates: classes with `create`, `add`, `retract`, `merge` and `finish`."""
        return self._registration("aggregate")

    def _registration(self, kind: FunctionKind) -> Registration:
        raise NotImplementedError
