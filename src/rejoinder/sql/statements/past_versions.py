"""VERSION AS OF and TIMESTAMP AS OF: relations of a query that are read at a past epoch.

    SELECT * FROM v VERSION AS OF 12 JOIN w USING (id)   →  SELECT * FROM `v@12` AS `v` JOIN w USING (id)

The new names stand for the rows of the relation at that epoch. FOR SYSTEM_TIME AS OF is a temporal join, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.sql.parse.dialect import SparkSql

_EPOCH_WORDS = ("VERSION", "SYSTEM_VERSION")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


@dataclass(frozen=True)
class PastRelation:
    """A relation at an epoch, or at a time in UTC. `name` stands for it in the query."""

    name: str
    relation: str
    at: int | datetime


def split_past(text: str) -> tuple[str, tuple[PastRelation, ...]]:
    """Replace relations at past epochs by names, and return what the names stand for. Raises `InvalidSql`.

    >>> split_past("SELECT * FROM v VERSION AS OF 12")
    ('SELECT * FROM `v@12` AS `v`', (PastRelation(name='v@12', relation='v', at=12),))
    """
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except SqlglotError:
        return text, ()  # the error is raised, with its place, where the query is parsed
    result, done = "", 0
    past: dict[str, PastRelation] = {}
    for position in range(1, len(tokens) - 2):
        clause = _clause(tokens, position)
        if clause is None:
            continue
        name, end = clause, position + 3
        while end < len(tokens) and tokens[end].token_type in (
            TokenType.TIMESTAMP,
            TokenType.TIMESTAMPTZ,
            TokenType.DATE,
        ):
            end += 1
        at = _moment(tokens[position], tokens[end] if end < len(tokens) else None, text)
        relation = ".".join(token.text for token in name[::2])
        written = at.isoformat(sep=" ") if isinstance(at, datetime) else str(at)
        alias = f"{relation}@{written}".replace(".", " ")
        past[alias] = PastRelation(alias, relation, at)
        following = tokens[end + 1] if end + 1 < len(tokens) else None
        is_named = following is not None and following.token_type in (*_NAMES, TokenType.ALIAS)
        result += text[done : name[0].start] + _quoted(alias) + ("" if is_named else f" AS {_quoted(name[-1].text)}")
        done = tokens[end].end + 1
    return result + text[done:], tuple(past.values())


def refuse_past(text: str, what: str) -> None:
    """Raise `Unsupported` if a query reads past epochs where it must not."""
    _, past = split_past(text)
    if past:
        raise Unsupported(
            f"AS OF an epoch is not supported in {what}",
            detail=f"`{past[0].relation}` as of {past[0].at}",
            hint="it belongs to a query: SELECT … FROM view VERSION AS OF 12; FOR SYSTEM_TIME AS OF a.time joins the "
            "versions of a table",
        )


def _clause(tokens: Sequence[Token], position: int) -> list[Token] | None:
    """Return the tokens of the relation before VERSION AS OF or TIMESTAMP AS OF; None if these words are not here."""
    words = [token.text.upper() for token in tokens[position : position + 3]]
    if words[1:] != ["AS", "OF"] or words[0] not in (*_EPOCH_WORDS, "TIMESTAMP"):
        return None
    following = tokens[position + 3].token_type if position + 3 < len(tokens) else None
    if words[0] == "TIMESTAMP" and following in _NAMES:
        return None  # a column: a temporal join
    end = position - (tokens[position - 1].text.upper() == "FOR")
    if end < 1 or tokens[end - 1].token_type not in _NAMES:
        return None
    if end >= 3 and tokens[end - 2].token_type == TokenType.DOT:
        return list(tokens[end - 3 : end])
    return [tokens[end - 1]]


def _moment(clause: Token, value: Token | None, text: str) -> int | datetime:
    if clause.text.upper() in _EPOCH_WORDS:
        if value is not None and value.text.isdigit():
            return int(value.text)
        example = "VERSION AS OF takes the number of an epoch, as in VERSION AS OF 12"
    else:
        example = "TIMESTAMP AS OF takes a time in UTC, as in TIMESTAMP AS OF '2026-01-31 12:00:00'"
        try:
            if value is not None and value.token_type == TokenType.STRING:
                return _in_utc(datetime.fromisoformat(value.text.strip()))
        except ValueError:
            pass
    raise InvalidSql(
        f"`{'' if value is None else value.text}` is not an epoch or time to read as of",
        detail=f"line {clause.line}: {text[clause.start : clause.start + 60]}",
        hint=example,
    )


def _in_utc(time: datetime) -> datetime:
    return time if time.tzinfo is None else time.astimezone(timezone.utc).replace(tzinfo=None)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
