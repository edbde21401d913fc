"""Spellings of Flink, ksqlDB, Materialize, RisingWave and Databricks that differ from ours, answered with ours.

Spellings that mean the same as one of ours are read where ours is read: `TUMBLE_START` and `LEFT ASOF JOIN` in
`dialect.py`, `EMIT ON WINDOW CLOSE` in `emission.py`, `WATERMARK FOR t AS t - i` in `source_statements.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import Unsupported

_SOURCE = "CREATE STREAM name (columns) USING format OPTIONS (…) declares a source"
_VIEW = "CREATE VIEW name AS SELECT … keeps the result of a query"
_STARTS: dict[str, str] = {
    "SUBSCRIBE": "SELECT STREAM * FROM name reads changes; on the command line --watch name follows them",
    "TAIL": "SELECT STREAM * FROM name reads changes; on the command line --watch name follows them",
    "INSERT": "CREATE SINK name FROM view USING format OPTIONS (…) writes the changes of a view; rows of a source come "
    "from its files or topic, or from flow.insert(…) in Python",
    **dict.fromkeys(
        ("UPDATE", "DELETE", "MERGE", "TRUNCATE"),
        "a view follows its sources: send changed rows to the source, a TABLE or CHANGELOG with OPTIONS (op …); "
        "in Python flow.insert(…) and flow.delete(…)",
    ),
    **dict.fromkeys(("BEGIN", "COMMIT", "ROLLBACK", "START"), "definitions of one text are one commit; leave it out"),
    "USE": "a state directory holds one flow; name it on the command line, or in Flow(…)",
    "DESCRIBE": "EXPLAIN name shows a relation; SHOW SOURCES and SHOW VIEWS list columns",
    "DESC": "EXPLAIN name shows a relation; SHOW SOURCES and SHOW VIEWS list columns",
    "REFRESH": "views are always up to date with the last committed epoch; leave the statement out",
    "SET": "options are given where a flow is started; see rejoinder run --help",
}
_CREATED: dict[str, str] = {
    "SOURCE": f"{_SOURCE}; TABLE and CHANGELOG do it for rows that change",
    "STREAMING": f"{_SOURCE}; {_VIEW}",
    "LIVE": f"{_SOURCE}; {_VIEW}",
    "EXTERNAL": _SOURCE,
    "CONNECTION": "options of a connection stand in OPTIONS (…) of the source or sink",
    "CATALOG": "a state directory holds the definitions of one flow; no catalog is needed",
    "DATABASE": "a state directory holds the definitions of one flow; no database is needed",
    "FUNCTION": "ENRICH(TABLE …, 'module:function', …) calls a Python function",
}
_WINDOWS = {
    "TUMBLING": "GROUP BY …, TUMBLE(time, INTERVAL 1 MINUTE)",
    "HOPPING": "GROUP BY …, HOP(time, INTERVAL 1 MINUTE, INTERVAL 5 MINUTES): the slide, then the size",
    "SESSION": "session windows are not supported; TUMBLE, HOP and VALIDITY_WINDOW are",
}


def foreign_start(word: str, place: str) -> Unsupported | None:
    """The answer to a statement of another system, by its first word; None for an unknown word."""
    hint = _STARTS.get(word)
    return None if hint is None else Unsupported(f"{word} is not supported", detail=place, hint=hint)


def foreign_create(word: str, place: str) -> Unsupported | None:
    """The answer to CREATE and a word of another system; None for an unknown word."""
    hint = _CREATED.get(word)
    return None if hint is None else Unsupported(f"CREATE {word} is not supported", detail=place, hint=hint)


def foreign_after_columns(word: str, name: str, place: str) -> Unsupported | None:
    """The answer to what other systems write after the columns of a source; None for an unknown word."""
    if word == "WITH":
        return Unsupported(
            f"WITH (…) after the columns of `{name}` is not supported",
            detail=place,
            hint="write USING format OPTIONS (key 'value', …), as in USING kafka OPTIONS (topic 'orders')",
        )
    if word == "AS":
        return Unsupported(f"a source, `{name}`, cannot be the result of a query", detail=place, hint=_VIEW)
    return None


def refuse_foreign_clauses(tokens: Sequence[Token], text: str) -> None:
    """Refuse ksqlDB's `WINDOW TUMBLING (SIZE 1 MINUTE)` behind FROM, which would be read as an alias."""
    for before, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_window = before.text.upper() == "WINDOW" and before.token_type != TokenType.IDENTIFIER
        if is_window and word.text.upper() in _WINDOWS and after.token_type == TokenType.L_PAREN:
            raise Unsupported(
                f"WINDOW {word.text.upper()} behind FROM is not supported",
                detail=f"line {before.line}: {text[before.start : after.end + 41]}",
                hint=_WINDOWS[word.text.upper()],
            )
