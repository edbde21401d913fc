"""Parse CREATE STREAM, TABLE, CHANGELOG and MAPPING: columns, keys, watermarks, format and options.

CREATE MAPPING is another spelling of CREATE STREAM or, with a primary key, of CREATE TABLE (`create_mapping.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql, PlanningError, Unsupported, near_misses
from rejoinder.ir.catalog import Kind, Source
from rejoinder.sql.definitions.source_definition import make_source
from rejoinder.sql.parse.foreign_spellings import foreign_after_columns, foreign_in_column
from rejoinder.sql.parse.tokens import TokenReader
from rejoinder.sql.statements.create_mapping import mapped
from rejoinder.sql.types.spark_types import parse_type

_CLAUSES = ("USING", "OPTIONS", "RETAIN")
_STARTS = ("ALTER", "CREATE", "DROP", "EXPLAIN", "SELECT", "SHOW", "WITH")
KINDS: dict[str, Kind] = {"STREAM": "stream", "TABLE": "table", "CHANGELOG": "changelog"}


@dataclass
class _Columns:
    """What stands between the parentheses of a declaration."""

    fields: list[pa.Field] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    watermarks: dict[str, str] = field(default_factory=dict)
    not_null: dict[str, Token] = field(default_factory=dict)
    computed: list[tuple[int, str, str]] = field(default_factory=list)
    """Computed columns: position among all columns, name and text."""


class SourceReader(TokenReader):
    """Reads the declaration of a source."""

    def source(self, kind: Kind) -> tuple[Source, bool]:
        """Parse what follows CREATE STREAM, TABLE or CHANGELOG. Also return whether it is IF NOT EXISTS."""
        unless = self.if_not_exists()
        name = self.name()
        columns = self.columns(name)
        format_, options = "memory", dict[str, str]()
        while self.at < len(self.tokens):
            word = self.word()
            if word == "USING":
                format_ = self.name().lower()
            elif word == "OPTIONS":
                options |= self.options()
            elif word == "RETAIN":
                options["retain"] = self.retained(name)
            else:
                foreign = foreign_after_columns(word, name, self.place(self.tokens[self.at - 1]))
                if foreign is not None:
                    raise foreign
                raise self.unexpected(word, name)
        key, watermarks, computed = columns.primary_key, columns.watermarks, columns.computed
        return make_source(name, kind, columns.fields, key, format_, options, watermarks, computed), unless

    def unexpected(self, word: str, relation: str) -> InvalidSql:
        """Return the error for an unknown word after the columns."""
        hint = near_misses(word, _CLAUSES)
        if word in _STARTS:
            hint = f"end the statement before it with a semicolon: … ; {word} …"
        return InvalidSql(
            f"unexpected `{self.tokens[self.at - 1].text}` after the columns of `{relation}`",
            detail=self.place(self.tokens[self.at - 1]),
            hint=hint or "USING format, OPTIONS (key 'value', …), RETAIN ALL and RETAIN INTERVAL … may follow",
        )

    def retained(self, relation: str) -> str:
        """Parse what follows RETAIN: ALL, or the text of an interval."""
        first = self.at
        while self.at < len(self.tokens) and self.peek() not in ("USING", "OPTIONS", "RETAIN"):
            self.at += 1
        return self.since(first, f"RETAIN of `{relation}` has no length", "as in RETAIN ALL, or RETAIN INTERVAL 7 DAYS")

    def since(self, first: int, fact: str, hint: str) -> str:
        """Return the text from token `first` up to the next one. Raises `InvalidSql` if there is none."""
        if first == self.at:
            raise InvalidSql(fact, detail=self.place(self.tokens[first - 1]), hint=hint)
        return self.text[self.tokens[first].start : self.tokens[self.at - 1].end + 1]

    def mapping(self) -> tuple[Source, bool]:
        """Parse what follows CREATE MAPPING: name [EXTERNAL NAME …] (columns) TYPE type [OPTIONS (…)]."""
        unless = self.if_not_exists()
        name, outside = self.name(), None
        if self.peek() == "EXTERNAL":
            self.expect("EXTERNAL")
            self.expect("NAME")
            outside = self.take().text
        columns = self.columns(name)
        self.expect("TYPE")
        type_, options = self.take().text, {}
        if self.peek() == "OPTIONS":
            self.expect("OPTIONS")
            options = self.options()
        self.end()
        format_, options = mapped(name, type_, outside, options)
        kind: Kind = "table" if columns.primary_key else "stream"
        fields, key, watermarks = columns.fields, columns.primary_key, columns.watermarks
        return make_source(name, kind, fields, key, format_, options, watermarks, columns.computed), unless

    def columns(self, relation: str) -> _Columns:
        """Parse columns, PRIMARY KEY and WATERMARK clauses between parentheses."""
        result = _Columns()
        foreign = foreign_after_columns(self.peek(), relation, self.place(self.tokens[self.at - 1]))
        if foreign is not None:
            raise foreign
        self.expect("(")
        while True:
            word = self.peek()
            if word == "PRIMARY":
                self.expect("PRIMARY")
                self.expect("KEY")
                result.primary_key = self.names()
                self.not_enforced()
            elif word == "WATERMARK":
                self.watermark(relation, result.watermarks)
            else:
                column = self.column(result)
                result.fields += [] if column is None else [column]
            if self.peek() == ",":
                self.expect(",")
                continue
            self.expect(")")
            self.refuse_not_null(result)
            return result

    def not_enforced(self) -> None:
        """Skip Flink's NOT ENFORCED. A primary key is never enforced; it says which row a record replaces."""
        if self.peek() == "NOT" and [token.text.upper() for token in self.tokens[self.at : self.at + 2]][1:] == [
            "ENFORCED"
        ]:
            self.at += 2

    def refuse_not_null(self, columns: _Columns) -> None:
        """Raise `Unsupported` for NOT NULL outside the primary key, because it would not be checked."""
        keys = {name.lower() for name in columns.primary_key}
        for column, token in columns.not_null.items():
            if column.lower() not in keys:
                raise Unsupported(
                    f"NOT NULL of column `{column}` is not supported",
                    detail=self.place(token),
                    hint="remove it, and filter in a view: WHERE … IS NOT NULL; keys of a TABLE are never NULL",
                )

    def watermark(self, relation: str, delays: dict[str, str]) -> None:
        """Parse `WATERMARK column [DELAY OF interval]` and add the text of the interval to `delays`.

        Flink's `WATERMARK FOR column AS column - interval` means the same.
        """
        self.expect("WATERMARK")
        if self.peek() == "FOR":
            self.expect("FOR")
        place = self.place(self.tokens[self.at])
        column = self.name()
        if column.lower() in map(str.lower, delays):
            raise InvalidSql(
                f"`{relation}` has two watermarks of `{column}`", detail=place, hint="remove one: a column has one"
            )
        if self.peek() == "AS":
            delays[column] = self.watermark_expression(relation, column)
            return
        delays[column] = ""
        if self.peek() != "DELAY":
            return
        self.expect("DELAY")
        self.expect("OF")
        delays[column] = self.delay(relation)

    def watermark_expression(self, relation: str, column: str) -> str:
        """Parse the delay in Flink's `AS column - interval`; `AS column` means no delay."""
        self.expect("AS")
        place = self.place(self.tokens[self.at - 1])
        is_behind = self.peek() == column.upper()
        if is_behind:
            self.take()
            if self.peek() in (",", ")"):
                return "0"
            is_behind = self.word() == "-"
        if not is_behind:
            raise Unsupported(
                f"the watermark of `{relation}`.`{column}` is not the column minus an interval",
                detail=place,
                hint=f"write WATERMARK {column} DELAY OF INTERVAL 5 SECONDS, how far it stays behind the column",
            )
        return self.delay(relation)

    def delay(self, relation: str) -> str:
        """Return the text of an interval or number, up to the next item of the columns."""
        first, depth = self.at, 0
        while self.at < len(self.tokens) and (depth or self.peek() not in (",", ")")):
            depth += (self.peek() == "(") - (self.peek() == ")")
            self.at += 1
        example = "as in WATERMARK ts DELAY OF INTERVAL 5 SECONDS"
        return self.since(first, f"WATERMARK of `{relation}` has no delay", example)

    def column(self, result: _Columns) -> pa.Field | None:
        """Parse a column: name, type, and optional PRIMARY KEY, NOT NULL or COMMENT; None if it is computed."""
        name = self.name()
        if self.peek() == "AS":
            result.computed.append((len(result.fields) + len(result.computed), name, self.computed(name)))
            return None
        first = self.at
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            word = token.text.upper()
            if depth == 0 and word in (",", ")", "PRIMARY", "NOT", "COMMENT"):
                break
            foreign = foreign_in_column(word, name, self.place(token)) if depth == 0 and self.at > first else None
            if foreign is not None:
                raise foreign
            if depth == 0 and word == "EXTERNAL":
                raise Unsupported(
                    f"EXTERNAL NAME of column `{name}` is not supported",
                    detail=self.place(token),
                    hint="give the column the name of its field, and rename it with AS in a view",
                )
            depth += word.count("(") + word.count("<") - word.count(")") - word.count(">")
            self.at += 1
        text = self.since(first, f"column `{name}` has no type", "write a type after the name, as in `id BIGINT`")
        kind = self.typed(text, name, first)
        while self.peek() in ("PRIMARY", "NOT", "COMMENT"):
            word = self.word()
            if word == "PRIMARY":
                self.expect("KEY")
                result.primary_key = (*result.primary_key, name)
                self.not_enforced()
            elif word == "NOT":
                result.not_null[name] = self.tokens[self.at - 1]
                self.expect("NULL")
            else:
                self.take()
        return pa.field(name, kind)

    def typed(self, text: str, column: str, first: int) -> pa.DataType:
        """Return the type of a column, whose text starts at token `first`. Raises a `PlanningError` with its place."""
        try:
            return parse_type(text)
        except PlanningError as failure:
            place = self.place(self.tokens[first])
            hint = failure.hint or "write a type such as BIGINT or DECIMAL(10, 2)"
            raise type(failure)(failure.fact, detail=f"column `{column}` in {place}", hint=hint) from failure

    def computed(self, name: str) -> str:
        """Return the text of a computed column, up to the next item of the columns."""
        self.expect("AS")
        first, depth = self.at, 0
        while self.at < len(self.tokens) and (depth or self.peek() not in (",", ")", "COMMENT")):
            depth += (self.peek() == "(") - (self.peek() == ")")
            self.at += 1
        if first == self.at:
            raise InvalidSql(
                f"computed column `{name}` has no expression",
                detail=self.place(self.tokens[first - 1]),
                hint=f"as in {name} AS TO_TIMESTAMP(text)",
            )
        text = self.text[self.tokens[first].start : self.tokens[self.at - 1].end + 1]
        if self.peek() == "COMMENT":
            self.at += 2
        return text

    def options(self) -> dict[str, str]:
        """Parse `key 'value'` or `'key' = 'value'` pairs; keys may have dots, followed by names or numbers."""
        result: dict[str, str] = {}
        self.expect("(")
        while self.peek() != ")":
            is_text = self.tokens[self.at].token_type == TokenType.STRING if self.at < len(self.tokens) else False
            key = self.take().text if is_text else self.name()
            while self.peek() == ".":
                self.expect(".")
                key += "." + (self.take().text if self.is_number() else self.name())
            if self.peek() == "=":
                self.expect("=")
            self.refuse_option(key.lower(), result)
            result[key.lower()] = self.take().text
            if self.peek() == ",":
                self.expect(",")
        self.expect(")")
        return result

    def is_number(self) -> bool:
        """Return whether the next token is a number."""
        return self.at < len(self.tokens) and self.tokens[self.at].token_type == TokenType.NUMBER

    def refuse_option(self, key: str, options: dict[str, str]) -> None:
        """Raise `InvalidSql` for an option that appears twice, or a value without quotes."""
        if key in options:
            raise InvalidSql(
                f"option `{key}` appears twice", detail=self.place(self.tokens[self.at - 1]), hint="remove one"
            )
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        after = self.tokens[self.at + 1].text if self.at + 1 < len(self.tokens) else ")"
        if token is not None and token.token_type != TokenType.STRING and after not in (",", ")"):
            example = "1 hour" if token.text.upper() == "INTERVAL" else "…"
            raise InvalidSql(
                f"the value of option `{key}` has no quotes", detail=self.place(token), hint=f"as in {key} '{example}'"
            )
