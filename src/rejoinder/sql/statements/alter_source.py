"""Parse ALTER STREAM, TABLE and CHANGELOG: columns, watermark delays and options of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.errors import InvalidSql, near_misses
from rejoinder.ir.catalog import Kind
from rejoinder.sql.statements.source_statements import SourceReader

_ACTIONS = ("ADD COLUMN", "DROP COLUMN", "RENAME COLUMN", "ALTER COLUMN", "SET WATERMARK", "SET OPTIONS")


@dataclass(frozen=True)
class AddColumn:
    column: str
    type: pa.DataType
    default: str | None = None
    """The text of its value in rows of the past; None: NULL."""


@dataclass(frozen=True)
class DropColumn:
    column: str
    is_purged: bool = False
    """Whether the user allows that its values in rows of the past are lost."""


@dataclass(frozen=True)
class RenameColumn:
    column: str
    new_name: str


@dataclass(frozen=True)
class WidenColumn:
    column: str
    type: pa.DataType


@dataclass(frozen=True)
class SetDelay:
    column: str
    delay: str


@dataclass(frozen=True)
class SetSourceOptions:
    options: Mapping[str, str]


Action = AddColumn | DropColumn | RenameColumn | WidenColumn | SetDelay | SetSourceOptions


@dataclass(frozen=True)
class AlterSource:
    name: str
    action: Action
    cascade: bool = False
    """Whether the columns of views that read the source may change."""
    kind: Kind | None = None
    """What the statement calls the source; None: any kind."""


class AlterSourceReader(SourceReader):
    """Reads what follows ALTER STREAM, TABLE or CHANGELOG."""

    def alter_source(self, kind: Kind) -> AlterSource:
        """Parse name, then one action, then [CASCADE]."""
        name = self.name()
        action = self._action(name)
        cascade = self.cascade()
        self.end()
        return AlterSource(name, action, cascade, kind)

    def cascade(self) -> bool:
        """Parse [CASCADE]."""
        if self.peek() != "CASCADE":
            return False
        self.expect("CASCADE")
        return True

    def _action(self, relation: str) -> Action:
        word = self.word()
        if word == "SET":
            what = self.word()
            if what == "OPTIONS":
                return SetSourceOptions(self.options())
            if what == "WATERMARK":
                return self._delay(relation)
        elif word in ("ADD", "DROP", "RENAME", "ALTER"):
            if self.peek() == "COLUMN":
                self.expect("COLUMN")
            elif word == "RENAME":
                raise self._unknown(relation)
            column = self.name()
            if word == "ADD":
                return AddColumn(column, self._type(column, "DEFAULT"), self._default(column))
            if word == "DROP":
                return DropColumn(column, self._purge())
            if word == "RENAME":
                self.expect("TO")
                return RenameColumn(column, self.name())
            self.expect("TYPE")
            return WidenColumn(column, self._type(column))
        raise self._unknown(relation)

    def _unknown(self, relation: str) -> InvalidSql:
        token = self.tokens[self.at - 1]
        return InvalidSql(
            f"`{relation}` cannot be altered by `{token.text.upper()}`",
            detail=self.place(token),
            hint=near_misses(token.text.upper(), _ACTIONS) or f"one of {', '.join(_ACTIONS)}",
        )

    def _delay(self, relation: str) -> SetDelay:
        delays: dict[str, str] = {}
        self.at -= 1
        self.watermark(relation, delays)
        column, delay = next(iter(delays.items()))
        return SetDelay(column, delay)

    def _type(self, column: str, *ends: str) -> pa.DataType:
        first, depth = self.at, 0
        while self.at < len(self.tokens) and (depth or self.peek() not in (*ends, "CASCADE")):
            word = self.peek()
            depth += word.count("(") + word.count("<") - word.count(")") - word.count(">")
            self.at += 1
        text = self.since(first, f"column `{column}` has no type", f"as in ADD COLUMN {column} BIGINT")
        return self.typed(text, column, first)

    def _default(self, column: str) -> str | None:
        if self.peek() != "DEFAULT":
            return None
        self.expect("DEFAULT")
        first = self.at
        while self.at < len(self.tokens) and not (self.peek() == "CASCADE" and self.at + 1 == len(self.tokens)):
            self.at += 1
        return self.since(first, f"DEFAULT of `{column}` has no value", "as in DEFAULT 0")

    def _purge(self) -> bool:
        if self.peek() != "PURGE":
            return False
        self.expect("PURGE")
        return True
