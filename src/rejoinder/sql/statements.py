"""Statements: the words of ours that come before or around a query, read from sqlglot's tokens.

Queries themselves are sqlglot's. A statement keeps the text it came from, for messages and the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.kernels.columns import RESERVED
from rejoinder.plan.catalog import Kind, Source
from rejoinder.sql.dialect import SparkSql
from rejoinder.sql.types import parse_type

Rendering = Literal["TABLE", "STREAM", "TVR"]
_KINDS: dict[str, Kind] = {"STREAM": "stream", "TABLE": "table", "CHANGELOG": "changelog"}
_FORMATS = ("arrow", "csv", "json", "memory", "parquet")
_MARKS = ("op", "diff", "order", "malformed")
_READING = ("path", "header", "sep", "delimiter", "quote", "nullvalue", "multiline")
_PICKING = ("maxfilespertrigger", "maxbytespertrigger", "pathglobfilter", "recursivefilelookup", "maxfileage")
_TIDYING = ("cleansource", "sourcearchivedir", "latestfirst")
_OPTIONS = frozenset((*_MARKS, *_READING, *_PICKING, *_TIDYING))
_SHOWN = ("ARRANGEMENTS", "SOURCES", "TABLES", "VIEWS", "WATERMARKS")
_STARTS = ("CREATE", "DROP", "EXPLAIN", "SELECT", "SHOW", "WITH")


@dataclass(frozen=True)
class CreateSource:
    source: Source
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    name: str
    query: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateIndex:
    name: str
    relation: str
    columns: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop:
    what: Literal["RELATION", "INDEX"]
    name: str
    if_exists: bool


@dataclass(frozen=True)
class Explain:
    target: str


@dataclass(frozen=True)
class Show:
    what: str


@dataclass(frozen=True)
class Select:
    query: str
    rendering: Rendering


Statement = CreateSource | CreateView | CreateIndex | Drop | Explain | Show | Select


def parse_statements(text: str) -> list[Statement]:
    """Read a text of statements separated by semicolons. Raises `InvalidSql`, which shows the place."""
    return [_Reader(text, tokens).statement() for tokens in _split(text)]


def parse_query(text: str) -> exp.Query:
    """Read one query with sqlglot. Raises `InvalidSql`."""
    try:
        node = sqlglot.parse_one(text, read=SparkSql)
    except SqlglotError as failure:
        raise _from_sqlglot(failure, text) from failure
    if not isinstance(node, exp.Query):
        raise InvalidSql("this is not a query", detail=text.strip(), hint="a query starts with SELECT or WITH")
    return node


def _from_sqlglot(failure: SqlglotError, text: str) -> InvalidSql:
    found = getattr(failure, "errors", None)
    if found:
        first = found[0]
        place = f"line {first['line']}, column {first['col']}: … {first['start_context'][-40:]}>>{first['highlight']}<<"
        return InvalidSql(str(first["description"]).lower().rstrip("."), detail=place + first["end_context"][:40])
    return InvalidSql("the text cannot be read as SQL", detail=f"{failure}: {text.strip()[:80]}")


def _split(text: str) -> list[list[Token]]:
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except SqlglotError as failure:
        raise InvalidSql("the text cannot be read as SQL", detail=str(failure).splitlines()[0]) from failure
    result: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            result.append([])
        else:
            result[-1] += _words(token)
    return [part for part in result if part]


def _words(token: Token) -> list[Token]:
    """Take apart what sqlglot joins: `PRIMARY KEY` is one token there."""
    words = token.text.split()
    if len(words) < 2 or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return [token]
    return [Token(TokenType.VAR, word, token.line, token.col, token.start, token.end, []) for word in words]


@dataclass
class _Columns:
    fields: list[pa.Field] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    watermarks: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Reads one statement from its tokens."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    def statement(self) -> Statement:
        word = self.word()
        if word == "CREATE":
            return self.create()
        if word == "DROP":
            return self.drop()
        if word == "EXPLAIN":
            return Explain(self.rest())
        if word == "SHOW":
            return self.show()
        if word in ("SELECT", "WITH", "("):
            return self.select()
        raise InvalidSql(
            f"a statement cannot start with `{self.tokens[0].text}`",
            detail=self.place(self.tokens[0]),
            hint=near_misses(word, _STARTS) or f"statements start with {', '.join(_STARTS)}",
        )

    def select(self) -> Select:
        """A query; TABLE, STREAM or TVR after the first SELECT outside parentheses says how to show it."""
        depth = 0
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            depth += (before.token_type == TokenType.L_PAREN) - (before.token_type == TokenType.R_PAREN)
            word = token.text.upper()
            if depth == 0 and before.text.upper() == "SELECT" and word in ("TABLE", "STREAM", "TVR"):
                query = (
                    self.text[self.tokens[0].start : token.start] + self.text[token.end + 1 : self.tokens[-1].end + 1]
                )
                rendering: Rendering = "TABLE" if word == "TABLE" else "STREAM" if word == "STREAM" else "TVR"
                return Select(query, rendering)
        return Select(self.text[self.tokens[0].start : self.tokens[-1].end + 1], "TABLE")

    def create(self) -> Statement:
        word = self.word()
        if word in ("TEMPORARY", "OR"):
            raise Unsupported(f"CREATE {word} is not offered", hint="DROP the relation and CREATE it again")
        if word == "MATERIALIZED":
            word = self.word()
        if word in _KINDS:
            return self.source(_KINDS[word])
        if word == "VIEW":
            unless = self.if_not_exists()
            name = self.name()
            self.expect("AS")
            return CreateView(name, self.rest(), unless)
        if word == "INDEX":
            return self.index()
        known = (*_KINDS, "VIEW", "INDEX")
        raise InvalidSql(
            f"CREATE {word} is not known",
            detail=self.place(self.tokens[self.at - 1]),
            hint=near_misses(word, known) or f"one of {', '.join(known)}",
        )

    def index(self) -> CreateIndex:
        unless = self.if_not_exists()
        name = "" if self.peek() == "ON" else self.name()
        self.expect("ON")
        relation = self.name()
        columns = self.names()
        self.end()
        return CreateIndex(name or f"{relation}_{'_'.join(columns)}", relation, columns, unless)

    def drop(self) -> Drop:
        word = self.word()
        if word not in (*_KINDS, "VIEW", "INDEX"):
            raise InvalidSql(f"DROP {word} is not known", hint="DROP VIEW, TABLE, STREAM, CHANGELOG or INDEX")
        exists = self.peek() == "IF"
        if exists:
            self.expect("IF")
            self.expect("EXISTS")
        name = self.name()
        self.end()
        return Drop("INDEX" if word == "INDEX" else "RELATION", name, exists)

    def show(self) -> Show:
        word = self.word()
        if word not in _SHOWN:
            raise InvalidSql(
                f"SHOW {word} is not known", hint=near_misses(word, _SHOWN) or f"one of {', '.join(_SHOWN)}"
            )
        self.end()
        return Show(word)

    # -- sources ------------------------------------------------------------------------------------------------------

    def source(self, kind: Kind) -> CreateSource:
        unless = self.if_not_exists()
        name = self.name()
        columns = self.columns(name)
        format_, options = "memory", {}
        while self.at < len(self.tokens):
            word = self.word()
            if word == "USING":
                format_ = self.name().lower()
            elif word == "OPTIONS":
                options = self.options()
            else:
                raise InvalidSql(
                    f"unexpected `{self.tokens[self.at - 1].text}` after the columns of `{name}`",
                    detail=self.place(self.tokens[self.at - 1]),
                    hint="USING format and OPTIONS (key 'value', …) may follow",
                )
        return CreateSource(make_source(name, kind, columns.fields, columns.primary_key, format_, options), unless)

    def columns(self, relation: str) -> _Columns:
        """Columns, PRIMARY KEY and WATERMARK clauses between parentheses."""
        result = _Columns()
        self.expect("(")
        while True:
            word = self.peek()
            if word == "PRIMARY":
                self.expect("PRIMARY")
                self.expect("KEY")
                result.primary_key = self.names()
            elif word == "WATERMARK":
                raise Unsupported(
                    f"WATERMARK on `{relation}` is not offered yet",
                    hint="leave the clause out: joins without time bounds need no watermark",
                )
            else:
                result.fields.append(self.column(result))
            if self.peek() == ",":
                self.expect(",")
                continue
            self.expect(")")
            return result

    def column(self, result: _Columns) -> pa.Field:
        """A column: name, type, and perhaps PRIMARY KEY or NOT NULL."""
        name = self.name()
        first = self.at
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            word = token.text.upper()
            if depth == 0 and word in (",", ")", "PRIMARY", "NOT", "COMMENT"):
                break
            depth += word.count("(") + word.count("<") - word.count(")") - word.count(">")
            self.at += 1
        if first == self.at:
            raise InvalidSql(f"column `{name}` has no type", detail=self.place(self.tokens[first - 1]))
        kind = parse_type(self.text[self.tokens[first].start : self.tokens[self.at - 1].end + 1])
        while self.peek() in ("PRIMARY", "NOT"):
            if self.word() == "PRIMARY":
                self.expect("KEY")
                result.primary_key = (*result.primary_key, name)
            else:
                self.expect("NULL")
        return pa.field(name, kind)

    def options(self) -> dict[str, str]:
        """Key and value pairs: `key 'value'` or `key = 'value'`, keys with dots allowed."""
        result: dict[str, str] = {}
        self.expect("(")
        while self.peek() != ")":
            key = self.name()
            while self.peek() == ".":
                self.expect(".")
                key += "." + self.name()
            if self.peek() == "=":
                self.expect("=")
            result[key.lower()] = self.take().text
            if self.peek() == ",":
                self.expect(",")
        self.expect(")")
        return result

    # -- tokens -------------------------------------------------------------------------------------------------------

    def peek(self) -> str:
        return self.tokens[self.at].text.upper() if self.at < len(self.tokens) else ""

    def take(self) -> Token:
        if self.at >= len(self.tokens):
            raise InvalidSql("the statement ends too early", detail=self.place(self.tokens[-1]))
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self) -> str:
        return self.take().text.upper()

    def expect(self, word: str) -> None:
        token = self.take()
        if token.text.upper() != word:
            raise InvalidSql(f"expected `{word}` and found `{token.text}`", detail=self.place(token))

    def name(self) -> str:
        token = self.take()
        if token.token_type in (TokenType.STRING, TokenType.NUMBER) or not token.text.strip():
            raise InvalidSql(f"expected a name and found `{token.text}`", detail=self.place(token))
        return token.text

    def names(self) -> tuple[str, ...]:
        self.expect("(")
        result = [self.name()]
        while self.peek() == ",":
            self.expect(",")
            result.append(self.name())
        self.expect(")")
        return tuple(result)

    def if_not_exists(self) -> bool:
        if self.peek() != "IF":
            return False
        for word in ("IF", "NOT", "EXISTS"):
            self.expect(word)
        return True

    def rest(self) -> str:
        """The text from here to the end of the statement."""
        if self.at >= len(self.tokens):
            raise InvalidSql("the statement ends too early", detail=self.place(self.tokens[-1]))
        return self.text[self.tokens[self.at].start : self.tokens[-1].end + 1]

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise InvalidSql(
                f"unexpected `{self.tokens[self.at].text}` at the end", detail=self.place(self.tokens[self.at])
            )

    def place(self, token: Token) -> str:
        line = self.text.splitlines()[token.line - 1] if self.text.splitlines() else ""
        return f"line {token.line}: {line.strip()}"


def make_source(
    name: str,
    kind: Kind,
    fields: list[pa.Field],
    primary_key: tuple[str, ...],
    format_: str,
    options: Mapping[str, str],
) -> Source:
    """Check a definition and make the source. Raises `PlanningError`s that name the column or option at fault."""
    given = dict(options)
    for option in given:
        if option not in _OPTIONS:
            hint = near_misses(option, _OPTIONS) or f"one of {', '.join(sorted(_OPTIONS))}"
            raise UnknownName(f"option `{option}` of `{name}` is not known", hint=hint)
    if given.get("malformed", "fail") not in ("fail", "divert"):
        raise InvalidSql(f"option `malformed` of `{name}` is `{given['malformed']}`", hint="'fail' or 'divert'")
    op, diff, order = given.pop("op", None), given.pop("diff", None), given.pop("order", None)
    marks = {mark for mark in (op, diff) if mark}
    kept = [f for f in fields if f.name not in marks]
    names = [f.name for f in kept]
    if len({n.lower() for n in names}) != len(names):
        double = next(n for n in names if sum(n.lower() == other.lower() for other in names) > 1)
        raise InvalidSql(f"column `{double}` of `{name}` is declared twice")
    for reserved in RESERVED.intersection(names):
        raise InvalidSql(f"column `{reserved}` of `{name}` has a reserved name", hint="choose another name")
    if not names:
        raise InvalidSql(f"`{name}` has no columns")
    if format_ not in (*_FORMATS, "dataframe"):
        hint = near_misses(format_, _FORMATS) or f"one of {', '.join(_FORMATS)}"
        raise Unsupported(f"format `{format_}` of `{name}` is not known", hint=hint)
    if format_ not in ("memory", "dataframe") and "path" not in given:
        raise InvalidSql(f"`{name}` USING {format_} has no path", hint="add OPTIONS (path '…')")
    if kind == "table" and not primary_key:
        raise InvalidSql(
            f"table `{name}` has no primary key",
            hint="add PRIMARY KEY (…), or declare a STREAM (rows only come) or a CHANGELOG (rows come and go)",
        )
    if kind != "table" and primary_key:
        raise InvalidSql(f"{kind} `{name}` cannot have a primary key", hint="only a TABLE has one")
    for column in (*primary_key, *([order] if order else [])):
        if column not in names:
            raise InvalidSql(f"`{name}` has no column `{column}`", hint=near_misses(column, names))
    if kind == "stream" and marks:
        raise InvalidSql(f"stream `{name}` is append-only and has no op or diff", hint="declare a CHANGELOG")
    if op and diff:
        raise InvalidSql(f"`{name}` has both op and diff", hint="give one of them")
    if kind == "changelog" and not marks and format_ not in ("memory",):
        raise InvalidSql(
            f"changelog `{name}` does not say which column tells inserts from deletes",
            hint="add OPTIONS (op 'column') or OPTIONS (diff 'column')",
        )
    if kind == "table" and diff:
        raise InvalidSql(f"table `{name}` has a diff column", hint="a table takes op; a CHANGELOG takes diff")
    if order and kind != "table":
        raise InvalidSql(f"{kind} `{name}` has an order column", hint="only a TABLE has one")
    return Source(name, kind, pa.schema(kept), primary_key, order, op, diff, format_, given)
