"""Syntax of Flink, ksqlDB, Materialize, RisingWave and Databricks that is not supported, each with a replacement.

Foreign syntax with an exact equivalent is accepted elsewhere: `TUMBLE_START` and `LEFT ASOF JOIN` in `dialect.py`,
`EMIT ON WINDOW CLOSE` in `emit_clause.py`, `WATERMARK FOR t AS t - i` in `source_statements.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import Unsupported
from rejoinder.sql.parse.foreign_names import foreign_function

_SOURCE = "CREATE STREAM name (columns) USING format OPTIONS (…) declares a source"
_VIEW = "CREATE VIEW name AS SELECT … keeps the result of a query"
_STARTS: dict[str, str] = {
    "TAIL": "SUBSCRIBE name follows the changes of a view; SELECT STREAM * FROM name reads those so far",
    "INSERT": "CREATE SINK name FROM view USING format OPTIONS (…) writes the changes of a view; rows of a source come "
    "from its files or topic, or from flow.insert(…) in Python",
    **dict.fromkeys(
        ("UPDATE", "DELETE", "MERGE", "TRUNCATE"),
        "a view follows its sources: send changed rows to the source, a TABLE or CHANGELOG with OPTIONS (op …); "
        "in Python use flow.insert(…) and flow.delete(…)",
    ),
    **dict.fromkeys(
        ("BEGIN", "COMMIT", "ROLLBACK", "START"), "remove it: the definitions of one text are one transaction"
    ),
    "USE": "a state directory has one flow; name it on the command line, or in Flow(…)",
    "DESCRIBE": "EXPLAIN name shows a relation; SHOW SOURCES and SHOW VIEWS list columns",
    "DESC": "EXPLAIN name shows a relation; SHOW SOURCES and SHOW VIEWS list columns",
    **dict.fromkeys(("PRINT", "COPY"), "SELECT STREAM * FROM name reads changes; CREATE SINK writes them"),
    **dict.fromkeys(("LIST", "DESCRIBE_HISTORY"), "SHOW SOURCES, SHOW VIEWS and SHOW SINKS list what is defined"),
    **dict.fromkeys(("TERMINATE", "PAUSE", "RESUME"), "DROP VIEW name ends a view; Ctrl-C stops a flow"),
    "APPLY": "CREATE TABLE name (…, PRIMARY KEY (…)) USING format OPTIONS (order 'column', op 'column') takes changes",
    **dict.fromkeys(
        ("CACHE", "UNCACHE", "ANALYZE", "OPTIMIZE", "VACUUM"),
        "the flow maintains views and state; rejoinder vacuum STATE deletes files that killed processes left behind",
    ),
    "REFRESH": "remove it: views are always up to date with the last committed epoch",
    "SET": "options are given where a flow is started (see rejoinder run --help); a zone with SET TIME ZONE '…'",
}
_CREATED: dict[str, str] = {
    "SOURCE": f"{_SOURCE}; TABLE and CHANGELOG do it for rows that change",
    "STREAMING": f"{_SOURCE}; {_VIEW}",
    "LIVE": f"{_SOURCE}; {_VIEW}",
    "EXTERNAL": _SOURCE,
    "CONNECTION": "write the options of the connection in OPTIONS (…) of the source or sink",
    **dict.fromkeys(
        ("CLUSTER", "ROLE", "USER", "WAREHOUSE"), "Spark runs the flow: see rejoinder run --help for its settings"
    ),
    "SECRET": "put it into an environment variable, and write password 'env:NAME' in OPTIONS (…)",
    "SCHEMA": "a state directory has the definitions of one flow; no schema is needed",
    "CATALOG": "a state directory has the definitions of one flow; no catalog is needed",
    "DATABASE": "a state directory has the definitions of one flow; no database is needed",
}
_WINDOWS = {
    "TUMBLING": "GROUP BY …, TUMBLE(time, INTERVAL 1 MINUTE)",
    "HOPPING": "GROUP BY …, HOP(time, INTERVAL 1 MINUTE, INTERVAL 5 MINUTES): the slide, then the size",
    "SESSION": "GROUP BY SESSION(time, INTERVAL 5 MINUTES)",
}


_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_SHOWN = {
    **dict.fromkeys(
        ("STREAMS", "TOPICS", "COLUMNS", "CONNECTIONS"), "SHOW SOURCES lists streams, tables and changelogs"
    ),
    "QUERIES": "SHOW VIEWS lists queries that are kept up to date",
    "CREATE": "SHOW SOURCES and SHOW VIEWS list definitions",
    "JOBS": "SHOW VIEWS and SHOW WATERMARKS show the progress of the flow",
}
_SINK = "CREATE SINK name FROM view USING kafka OPTIONS (topic '…', bootstrap '…')"
_IN_COLUMN = {
    "METADATA": "on Kafka, OPTIONS (timestamp 'column') fills a column with the record's time: see docs/kafka.md",
    "DEFAULT": "a field that is missing is NULL; write COALESCE(column, value) in a view",
    "GENERATED": "write the expression after the name: column AS expression",
    "KEY": "a STREAM has no key; CREATE TABLE … PRIMARY KEY (column) keeps the last row of each",
    "REFERENCES": "join the relations in a view",
    "UNIQUE": "a TABLE has one row for each PRIMARY KEY",
    "CHECK": "filter in a view: WHERE …",
}
_AFTER_COLUMNS = {
    "LOCATION": "write OPTIONS (path '…')",
    "TBLPROPERTIES": "write OPTIONS (key 'value', …)",
    "PARTITIONED": "remove it: folders are read as they are, and rows are distributed by join keys",
    "FORMAT": "write USING json, csv, parquet, arrow or kafka; on Kafka OPTIONS (format 'json')",
    "INCLUDE": "on Kafka, OPTIONS of the source name the parts of a record: see docs/kafka.md",
    "ENVELOPE": "write OPTIONS (envelope 'debezium')",
}


def foreign_relation(name: str, place: str) -> Unsupported | None:
    """Return the error for Databricks' `FROM STREAM name`, which parses as a relation with an alias, or None."""
    if name.upper() != "STREAM":
        return None
    hint = "remove STREAM: a view follows every input that it reads"
    return Unsupported("STREAM in FROM is not supported", detail=place, hint=hint)


def foreign_show(word: str) -> str:
    """Return the replacement of a SHOW statement of another system; empty for an unknown word."""
    return _SHOWN.get(word, "")


def foreign_sink(word: str, place: str) -> Unsupported | None:
    """Return the error for CREATE SINK in the syntax of another system; None for an unknown word."""
    if word == "AS":
        return Unsupported("a sink of a query is not supported", detail=place, hint=f"{_VIEW}; then {_SINK}")
    if word in ("INTO", "WITH", "TO"):
        return Unsupported(f"{word} in CREATE SINK is not supported", detail=place, hint=_SINK)
    return None


def foreign_in_column(word: str, column: str, place: str) -> Unsupported | None:
    """Return the error for a column option of another system; None for an unknown word."""
    hint = _IN_COLUMN.get(word)
    return (
        None if hint is None else Unsupported(f"{word} of column `{column}` is not supported", detail=place, hint=hint)
    )


def foreign_start(word: str, place: str) -> Unsupported | None:
    """Return the error for a statement of another system, by its first word; None for an unknown word."""
    hint = _STARTS.get(word)
    return None if hint is None else Unsupported(f"{word} is not supported", detail=place, hint=hint)


def foreign_create(word: str, place: str) -> Unsupported | None:
    """Return the error for a CREATE statement of another system; None for an unknown word."""
    hint = _CREATED.get(word)
    return None if hint is None else Unsupported(f"CREATE {word} is not supported", detail=place, hint=hint)


def foreign_after_columns(word: str, name: str, place: str) -> Unsupported | None:
    """Return the error for a source clause of another system; None for an unknown word."""
    if word == "WITH":
        return Unsupported(
            f"WITH (…) after the columns of `{name}` is not supported",
            detail=place,
            hint="write USING format OPTIONS (key 'value', …), as in USING kafka OPTIONS (topic 'orders')",
        )
    if word in _AFTER_COLUMNS:
        fact = f"{word} after the columns of `{name}` is not supported"
        return Unsupported(fact, detail=place, hint=_AFTER_COLUMNS[word])
    if word == "AS":
        return Unsupported(f"a source, `{name}`, cannot be the result of a query", detail=place, hint=_VIEW)
    return None


_AS_OF = (
    "write VERSION AS OF 12 or TIMESTAMP AS OF after the name of a view; SELECT TVR * FROM view shows every content"
)
_CLAUSES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("WITHIN", "#"),
        "WITHIN of a join",
        "bound the times in ON: … AND r.ts BETWEEN l.ts - INTERVAL 1 HOUR AND l.ts + INTERVAL 1 HOUR",
    ),
    (("MATCH_RECOGNIZE", "("), "MATCH_RECOGNIZE", "join the stream with itself, with bounds in time in ON"),
    (("WITHWATERMARK", "("), "WITHWATERMARK", foreign_function("withwatermark")),
    (
        ("DATA", "=>"),
        "DATA => of a window function",
        "pass arguments by position: TUMBLE(TABLE t, DESCRIPTOR(ts), size)",
    ),
    (("PARTITION BY", "a"), "PARTITION BY after FROM", "remove it: rows are distributed by join keys"),
)
"""A sequence of words, `#` for a number or a bracket and `a` for a name; its meaning; its replacement."""
_TIME_WORDS = ("SYSTEM_TIME", "SYSTEM_VERSION", "TIMESTAMP", "VERSION", "FOR")


def refuse_foreign_clauses(tokens: Sequence[Token], text: str) -> None:
    """Raise `Unsupported` for clauses of other systems that sqlglot would parse as an alias, or ignore."""
    words = ["" if token.token_type in _QUOTED else token.text.upper() for token in tokens]
    for position, (word, token) in enumerate(zip(words, tokens, strict=True)):
        before, after, then = (
            words[position - 1] if position else "",
            *(*words[position + 1 : position + 3], "", "")[:2],
        )
        if word == "WINDOW" and after in _WINDOWS and then == "(":
            raise _refusal(f"WINDOW {after} after FROM", _WINDOWS[after], token, text)
        is_time = then[:1].isdigit() or then in ("AT", "TIMESTAMP", "NOW")
        if (word, after) == ("AS", "OF") and is_time and before not in _TIME_WORDS:
            raise _refusal("AS OF of a query", _AS_OF, token, text)
        for pattern, what, hint in _CLAUSES:
            is_supported = word == "PARTITION BY" and (before == "(" or _follows_table(words, position))
            candidate = tokens[position : position + len(pattern)]
            fits = len(candidate) == len(pattern) and all(map(_fits, pattern, candidate))
            if pattern[0] == word and not is_supported and fits:
                raise _refusal(what, hint, token, text)


def _follows_table(words: Sequence[str], position: int) -> bool:
    """Whether a clause follows a relation that is the argument of a function: SESSION(TABLE t PARTITION BY …)."""
    depth = 0
    for at in range(position - 1, 0, -1):
        depth += (words[at] == ")") - (words[at] == "(")
        if depth < 0:
            return words[at + 1] == "TABLE"
    return False


def _fits(word: str, token: Token) -> bool:
    if word == "#":
        return token.token_type in (TokenType.NUMBER, TokenType.L_PAREN)
    if word == "a":
        return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    return token.text.upper() == word


def _refusal(what: str, hint: str, token: Token, text: str) -> Unsupported:
    return Unsupported(
        f"{what} is not supported", detail=f"line {token.line}: {text[token.start : token.start + 60]}", hint=hint
    )
