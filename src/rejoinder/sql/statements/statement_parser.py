"""Parse statements from sqlglot's tokens. Queries inside them stay text: sqlglot parses them when they are bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.connectors.sink_definition import make_sink
from rejoinder.errors import InvalidSql, Unsupported, near_misses
from rejoinder.ir.catalog import Sink, Source
from rejoinder.secret_options import refuse_broken_secret
from rejoinder.sql.definitions.view_options import checked_options
from rejoinder.sql.parse.foreign_spellings import foreign_create, foreign_show, foreign_sink, foreign_start
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.sql.parse.tokens import split_statements
from rejoinder.sql.statements.alter_source import AlterSource
from rejoinder.sql.statements.function_statements import CreateFunction
from rejoinder.sql.statements.past_versions import PastRelation, refuse_past, split_past
from rejoinder.sql.statements.row_questions import RowQuestionReader, Subscribe, Why, WhyNot
from rejoinder.sql.statements.source_statements import KINDS
from rejoinder.sql.types.zone_literals import checked_zone

Rendering = Literal["TABLE", "STREAM", "TVR"]
DropKind = Literal["STREAM", "TABLE", "CHANGELOG", "MAPPING", "VIEW", "INDEX", "SINK", "FUNCTION"]
_SHOWN = ("ARRANGEMENTS", "FUNCTIONS", "SINKS", "SOURCES", "TABLES", "VIEWS", "WATERMARKS")
_AFTER_A_COLUMN = (TokenType.FROM, TokenType.COMMA, TokenType.DOT, TokenType.ALIAS)
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES")
_STARTS = ("ALTER", "CREATE", "DROP", "EXPLAIN", "SET", "SHOW", "SUBSCRIBE", "WHY", *_QUERIES)


@dataclass(frozen=True)
class CreateSource:
    source: Source
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    name: str
    query: str
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    starting: str | None = None
    or_replace: bool = False
    """Whether to replace an existing view of that name."""
    cascade: bool = False
    """Whether a replacement may change the columns of the views above it."""


@dataclass(frozen=True)
class AlterView:
    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None
    """The new query; None if it stays."""
    cascade: bool = False


@dataclass(frozen=True)
class RenameView:
    name: str
    new_name: str


@dataclass(frozen=True)
class CreateIndex:
    name: str
    relation: str
    columns: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateSink:
    sink: Sink
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop:
    what: DropKind
    name: str
    if_exists: bool
    cascade: bool = False
    """Whether to drop dependent views and sinks, too."""


@dataclass(frozen=True)
class SetTimeZone:
    """Set the zone of the flow, under the name that DuckDB knows."""

    zone: str


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
    starting: str | None = None
    """From where incomplete sources are read."""
    past: tuple[PastRelation, ...] = ()
    """Relations that are read at past epochs, by their names in `query`."""


Question = Explain | Show | Select | Subscribe | Why | WhyNot
Statement = (
    CreateSource
    | CreateView
    | AlterView
    | AlterSource
    | RenameView
    | CreateIndex
    | CreateSink
    | CreateFunction
    | Drop
    | SetTimeZone
    | Question
)


def parse_statements(text: str) -> list[Statement]:
    """Parse statements separated by semicolons. Raises `InvalidSql` with the place of the error."""
    return with_stack([text], _statements, text)


def _statements(text: str) -> list[Statement]:
    refuse_broken_secret(text)
    return [_Reader(text, tokens).statement() for tokens in split_statements(text)]


class _Reader(RowQuestionReader):
    """Reads one statement."""

    def statement(self) -> Statement:
        word = self.word()
        if word == "CREATE":
            return self.create()
        if word == "DROP":
            return self.drop()
        if word == "ALTER":
            return self.alter()
        if word == "EXPLAIN":
            return Explain(self.rest())
        if word == "SHOW":
            return self.show()
        if word == "SUBSCRIBE":
            return self.subscribe()
        if word == "WHY":
            return self.why()
        if word == "SET" and self.peek() == "TIME":
            return self.time_zone()
        if word in (*_QUERIES, "("):
            return self.select()
        foreign = foreign_start(word, self.place(self.tokens[0]))
        if foreign is not None:
            raise foreign
        raise InvalidSql(
            f"a statement cannot start with `{self.tokens[0].text}`",
            detail=self.place(self.tokens[0]),
            hint=near_misses(word, _STARTS) or f"statements start with {', '.join(_STARTS)}",
        )

    def select(self) -> Select:
        """Parse a query. TABLE, STREAM or TVR after the first SELECT outside parentheses is its rendering."""
        starting = self.trailing_start()
        start, end = self.tokens[0].start, self.tokens[-1].end + 1
        shown = self.rendering(self.tokens)
        text, rendering = self.text[start:end], "TABLE"
        if shown is not None:
            text = self.text[start : shown.start] + self.text[shown.end + 1 : end]
            rendering = shown.text.upper()
        if rendering != "TABLE":
            refuse_past(text, f"SELECT {rendering}, which shows the history itself")
        query, past = split_past(text)
        return Select(query, next(word for word in get_args(Rendering) if word == rendering), starting, past)

    @staticmethod
    def rendering(tokens: list[Token]) -> Token | None:
        """Return the token of the rendering of a query."""
        depth = 0
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
            depth += (before.token_type == TokenType.L_PAREN) - (before.token_type == TokenType.R_PAREN)
            is_column = token.token_type == TokenType.IDENTIFIER or after.token_type in _AFTER_A_COLUMN
            is_first = depth == 0 and before.text.upper() == "SELECT"
            if is_first and token.text.upper() in get_args(Rendering) and not is_column:
                return token
        return None

    def create(self) -> Statement:
        word = self.word()
        or_replace = word == "OR"
        if or_replace:
            self.expect("REPLACE")
            word = self.word()
        if word in ("TEMPORARY", "TEMP"):
            raise Unsupported(
                f"CREATE {word} is not supported",
                detail=self.place(self.tokens[0]),
                hint=f"remove {word} and DROP it later, or name the query in WITH … AS (…)",
            )
        if word == "MATERIALIZED":
            word = self.word()
        if or_replace and word not in ("VIEW", "FUNCTION", "AGGREGATE"):
            raise Unsupported(
                f"CREATE OR REPLACE {word} is not supported",
                detail=self.place(self.tokens[0]),
                hint="only views and functions can be replaced; DROP it and CREATE it again",
            )
        if word in KINDS:
            return CreateSource(*self.source(KINDS[word]))
        if word == "MAPPING":
            return CreateSource(*self.mapping())
        if word == "VIEW":
            return self.view(or_replace=or_replace)
        if word == "INDEX":
            return self.index()
        if word == "SINK":
            return self.sink()
        if word in ("FUNCTION", "AGGREGATE"):
            if word == "AGGREGATE":
                self.expect("FUNCTION")
            return self.function(is_aggregate=word == "AGGREGATE", or_replace=or_replace)
        foreign = foreign_create(word, self.place(self.tokens[self.at - 1]))
        if foreign is not None:
            raise foreign
        known = (*KINDS, "MAPPING", "VIEW", "INDEX", "SINK", "FUNCTION")
        raise InvalidSql(
            f"CREATE {word} is not known",
            detail=self.place(self.tokens[self.at - 1]),
            hint=near_misses(word, known) or f"one of {', '.join(known)}",
        )

    def view(self, *, or_replace: bool) -> CreateView:
        """Parse what follows CREATE … VIEW: name [(names)] [OPTIONS (…)] [STARTING AT …] [CASCADE] AS query."""
        unless = self.if_not_exists()
        name = self.name()
        names = self.names() if self.peek() == "(" else ()
        options = {}
        if self.peek() == "OPTIONS":
            self.expect("OPTIONS")
            options = checked_options(name, self.options())
        starting = self.starting()
        cascade = self.cascade()
        if cascade and not or_replace:
            raise InvalidSql(
                f"CASCADE is for a view that is replaced, and `{name}` is created",
                detail=self.place(self.tokens[self.at - 1]),
                hint="CREATE OR REPLACE VIEW … CASCADE AS …, or remove CASCADE",
            )
        self.expect("AS")
        starting = starting or self.trailing_start()
        self._refuse_rendering(name)
        if or_replace and unless:
            raise InvalidSql(
                "OR REPLACE and IF NOT EXISTS exclude each other",
                detail=self.place(self.tokens[0]),
                hint="remove one of them",
            )
        return CreateView(name, self._view_query(), unless, options, names, starting, or_replace, cascade)

    def _view_query(self) -> str:
        """Return the rest of the text, as the query of a view."""
        query = self.rest()
        refuse_past(query, "a view, which follows the newest rows")
        return query

    def _refuse_rendering(self, name: str) -> None:
        """Raise `InvalidSql` if the query of a view is a rendering."""
        shown = self.rendering(self.tokens[self.at :])
        if shown is not None:
            how = shown.text.upper()
            raise InvalidSql(
                f"view `{name}` cannot be a {how}: a rendering belongs to the query that reads the view",
                detail=self.place(shown),
                hint=f"remove {how} here, and read the view with SELECT {how} * FROM {name}",
            )

    def alter(self) -> AlterView | RenameView | AlterSource:
        """Parse ALTER VIEW name: SET OPTIONS (…), [CASCADE] AS query, or RENAME TO name; or ALTER of a source."""
        if self.peek() in KINDS:
            return self.alter_source(KINDS[self.word()])
        self.expect("VIEW")
        name = self.name()
        if self.peek() == "RENAME":
            self.expect("RENAME")
            self.expect("TO")
            new_name = self.name()
            self.end()
            return RenameView(name, new_name)
        if self.peek() in ("AS", "CASCADE"):
            cascade = self.cascade()
            self.expect("AS")
            self._refuse_rendering(name)
            return AlterView(name, query=self._view_query(), cascade=cascade)
        self.expect("SET")
        self.expect("OPTIONS")
        options = checked_options(name, self.options())
        self.end()
        return AlterView(name, options)

    def time_zone(self) -> SetTimeZone:
        """Parse SET TIME ZONE 'zone'."""
        self.expect("TIME")
        self.expect("ZONE")
        token = self.take()
        if token.token_type != TokenType.STRING:
            raise InvalidSql(
                f"`{token.text}` is not a string", detail=self.place(token), hint="as in SET TIME ZONE 'Europe/Berlin'"
            )
        self.end()
        return SetTimeZone(checked_zone(token.text))

    def index(self) -> CreateIndex:
        unless = self.if_not_exists()
        name = "" if self.peek() == "ON" else self.name()
        self.expect("ON")
        relation = self.name()
        columns = self.names()
        self.end()
        return CreateIndex(name or f"{relation}_{'_'.join(columns)}", relation, columns, unless)

    def sink(self) -> CreateSink:
        """Parse CREATE SINK name FROM view USING format [OPTIONS (…)]."""
        unless = self.if_not_exists()
        name = self.name()
        self.refuse_foreign_sink()
        self.expect("FROM")
        view = self.relation()
        self.refuse_foreign_sink()
        self.expect("USING")
        format_, options = self.name().lower(), {}
        if self.peek() == "OPTIONS":
            self.expect("OPTIONS")
            options = self.options()
        self.end()
        return CreateSink(make_sink(name, view, format_, options), unless)

    def refuse_foreign_sink(self) -> None:
        """Raise `Unsupported` for syntax of other systems: AS SELECT, INTO KAFKA …, WITH (…)."""
        foreign = foreign_sink(self.peek(), self.place(self.tokens[min(self.at, len(self.tokens) - 1)]))
        if foreign is not None:
            raise foreign

    def drop(self) -> Drop:
        word = self.word()
        if word == "MATERIALIZED":
            word = self.word()
        what = next((kind for kind in get_args(DropKind) if kind == word), None)
        if what is None:
            raise InvalidSql(
                f"DROP {word} is not known",
                detail=self.place(self.tokens[self.at - 1]),
                hint="DROP VIEW, TABLE, STREAM, CHANGELOG, MAPPING, INDEX, SINK or FUNCTION",
            )
        exists = self.peek() == "IF"
        if exists:
            self.expect("IF")
            self.expect("EXISTS")
        name = self.name()
        behaviour = self.word() if self.peek() in ("CASCADE", "RESTRICT") else ""
        self.end()
        return Drop(what, name, exists, behaviour == "CASCADE")

    def show(self) -> Show:
        word = self.word()
        if word == "MATERIALIZED":
            word = self.word()
        if word not in _SHOWN:
            raise InvalidSql(
                f"SHOW {word} is not known",
                detail=self.place(self.tokens[self.at - 1]),
                hint=foreign_show(word) or near_misses(word, _SHOWN) or f"one of {', '.join(_SHOWN)}",
            )
        self.end()
        return Show(word)
