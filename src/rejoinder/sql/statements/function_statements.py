"""Parse CREATE FUNCTION: a function in Python, declared by name.

CREATE [AGGREGATE] FUNCTION [IF NOT EXISTS] name (argument TYPE, …) RETURNS TYPE | TABLE (column TYPE, …)
  LANGUAGE PYTHON [OPTIONS (vectorized 'true', timeout '5 seconds', version '2')] AS 'module:function'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from rejoinder.errors import InvalidSql, PlanningError, UnknownName, Unsupported, near_misses
from rejoinder.ir.function_reference import checked_reference
from rejoinder.ir.user_functions import TIMEOUT, FunctionKind, UserFunction
from rejoinder.sql.bind.function_names import refuse_known_name
from rejoinder.sql.parse.clauses import refuse_duplicate_names
from rejoinder.sql.statements.start_clause import StartReader
from rejoinder.sql.types.interval_literals import read_interval
from rejoinder.sql.types.spark_types import parse_type

_FORM = "CREATE FUNCTION name (argument TYPE, …) RETURNS TYPE LANGUAGE PYTHON AS 'module:function'"
_OPTIONS = ("timeout", "vectorized", "version")


@dataclass(frozen=True)
class CreateFunction:
    function: UserFunction
    if_not_exists: bool = False
    or_replace: bool = False
    """Whether to drop an existing function of that name first."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.name


class FunctionReader(StartReader):
    """Reads the declaration of a function."""

    def function(self, *, is_aggregate: bool, or_replace: bool) -> CreateFunction:
        """Parse what follows CREATE [OR REPLACE] [AGGREGATE] FUNCTION."""
        unless = self.if_not_exists()
        if or_replace and unless:
            fact, place = "OR REPLACE and IF NOT EXISTS exclude each other", self.place(self.tokens[0])
            raise InvalidSql(fact, detail=place, hint="remove one of them")
        name = self.name()
        if self.peek() != "(":
            place = self.place(self.tokens[min(self.at, len(self.tokens) - 1)])
            raise InvalidSql(f"function `{name}` has no arguments in parentheses", detail=place, hint=f"write {_FORM}")
        arguments = self.typed_names(name, may_be_empty=not is_aggregate)
        self.expect("RETURNS")
        kind: FunctionKind = "aggregate" if is_aggregate else "scalar"
        result: pa.DataType
        if self.peek() == "TABLE":
            if is_aggregate:
                raise Unsupported(
                    f"aggregate `{name}` would return a table",
                    detail=self.place(self.tokens[self.at]),
                    hint="return an ARRAY<STRUCT<…>>, and read its rows with inline(…)",
                )
            self.expect("TABLE")
            kind, result = "table", pa.struct(list(self.typed_names(name, may_be_empty=False)))
        else:
            result = self.type_until("LANGUAGE", name)
        self.expect("LANGUAGE")
        self.language(name)
        options = {}
        if self.peek() == "OPTIONS":
            self.expect("OPTIONS")
            options = self.options()
        self.expect("AS")
        token = self.take()
        if token.token_type != TokenType.STRING:
            raise InvalidSql(
                f"`{token.text}` is not a string", detail=self.place(token), hint=f"write it as in {_FORM}"
            )
        self.end()
        return CreateFunction(make_function(name, arguments, result, token.text, kind, options), unless, or_replace)

    def language(self, name: str) -> None:
        """Parse the language. Raises `Unsupported` unless it is Python."""
        token = self.take()
        if token.text.upper() != "PYTHON":
            raise Unsupported(
                f"function `{name}` in {token.text.upper()} is not supported",
                detail=self.place(token),
                hint="write it in Python: LANGUAGE PYTHON AS 'module:function'",
            )

    def typed_names(self, name: str, *, may_be_empty: bool) -> pa.Schema:
        """Parse names with types in parentheses."""
        self.expect("(")
        if self.peek() == ")" and may_be_empty:
            self.expect(")")
            return pa.schema([])
        fields = []
        while True:
            own, first, depth = self.name(), self.at, 0
            while self.at < len(self.tokens) and (depth or self.peek() not in (",", ")")):
                word = self.peek()
                depth += word.count("(") + word.count("<") - word.count(")") - word.count(">")
                self.at += 1
            fields.append(pa.field(own, self.type_of(first, f"`{own}` of `{name}`")))
            if self.word() == ")":
                refuse_duplicate_names([field.name for field in fields], f"in function `{name}`")
                return pa.schema(fields)

    def type_until(self, word: str, name: str) -> pa.DataType:
        """Parse a type, up to a word."""
        first = self.at
        while self.at < len(self.tokens) and self.peek() != word:
            self.at += 1
        return self.type_of(first, f"the result of `{name}`")

    def type_of(self, first: int, what: str) -> pa.DataType:
        """Return the type that the tokens from `first` to here name."""
        if first == self.at:
            raise InvalidSql(f"{what} has no type", detail=self.place(self.tokens[first - 1]), hint=f"write {_FORM}")
        text = self.text[self.tokens[first].start : self.tokens[self.at - 1].end + 1]
        try:
            return parse_type(text)
        except PlanningError as failure:
            hint = failure.hint or "write a type such as BIGINT or DECIMAL(10, 2)"
            raise type(failure)(failure.fact, detail=f"{what}: {text}", hint=hint) from failure


def make_function(
    name: str,
    arguments: pa.Schema,
    result: pa.DataType,
    reference: str,
    kind: FunctionKind = "scalar",
    options: Mapping[str, str] | None = None,
) -> UserFunction:
    """Check a declaration, and return the function. Raises a `PlanningError`."""
    refuse_known_name(name)
    options = options or {}
    unknown = [option for option in options if option not in _OPTIONS]
    if unknown:
        hint = near_misses(unknown[0], _OPTIONS) or f"one of {', '.join(_OPTIONS)}"
        raise UnknownName(f"function `{name}` has no option `{unknown[0]}`", detail=f"AS '{reference}'", hint=hint)
    vectorized = options.get("vectorized", "false").lower()
    if vectorized not in ("true", "false") or (vectorized == "true" and kind != "scalar"):
        raise InvalidSql(
            f"`vectorized` of `{name}` is '{vectorized}'",
            detail=f"it is a {kind} function",
            hint="'true' or 'false'; only scalar functions can be vectorized",
        )
    seconds = TIMEOUT
    if "timeout" in options:
        text = options["timeout"].strip()
        interval = read_interval(text if text.upper().startswith("INTERVAL") else f"INTERVAL {text}")
        if interval.months or interval.micros <= 0:
            hint = "use a positive interval, as in timeout '5 seconds'"
            raise InvalidSql(f"`timeout` of `{name}` is '{text}'", detail=f"AS '{reference}'", hint=hint)
        seconds = interval.micros / 1_000_000
    version = options.get("version", "")
    checked = checked_reference(reference, f"AS '{reference}' of function `{name}`")
    return UserFunction(name, arguments, result, checked, kind, vectorized == "true", seconds, version)
