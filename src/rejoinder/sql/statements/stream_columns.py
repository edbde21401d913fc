"""System columns of SELECT STREAM: `Sys.EmitTime`, `Sys.Undo` and `Sys.Epoch` in the SELECT list.

    SELECT id, Sys.Undo AS gone FROM v   →  SELECT id, CAST(NULL AS BOOLEAN) AS gone FROM v

The typed NULL keeps the place and name of the column while the query is planned and run; the rendering fills it in.
`CURRENT_TIMESTAMP AS name` is another spelling of the emit time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.parse.dialect import SparkSql

System = Literal["emit_time", "undo", "epoch"]
_SYSTEM: dict[str, tuple[System, str]] = {
    "emittime": ("emit_time", "TIMESTAMP"),
    "undo": ("undo", "BOOLEAN"),
    "epoch": ("epoch", "BIGINT"),
}


def split_system_items(text: str) -> tuple[str, dict[str, System]]:
    """Replace system columns by placeholders, and return which system column each name stands for.

    >>> split_system_items("SELECT id, Sys.Undo AS gone FROM v")
    ('SELECT id, CAST(NULL AS BOOLEAN) AS gone FROM v', {'gone': 'undo'})
    """
    if any(table.alias_or_name.lower() == "sys" for table in parse_query(text).find_all(exp.Table)):
        return text, {}
    systems: dict[str, System] = {}
    result, done = "", 0
    for item in _select_items(sqlglot.tokenize(text, read=SparkSql)):
        head = _system_item(item)
        if head is None:
            continue
        length, system, kind = head
        rest = item[length:]
        name = rest[-1].text if rest else item[length - 1].text
        if name.lower() in (other.lower() for other in systems):
            hint = "give one of them another name with AS"
            raise InvalidSql(f"column `{name}` appears twice in the result", detail=text, hint=hint)
        systems[name] = system
        alias = "" if rest else f" AS `{name}`"
        result += text[done : item[0].start] + f"CAST(NULL AS {kind}){alias}"
        done = item[length - 1].end + 1
    return result + text[done:], systems


def refuse_system_items(text: str, rendering: str) -> None:
    """Raise `InvalidSql` for `Sys.…` in a rendering that shows rows, not changes."""
    for item in _select_items(sqlglot.tokenize(text, read=SparkSql)):
        if len(item) >= 3 and _system_item(item) is not None and item[0].text.lower() == "sys":
            raise InvalidSql(
                f"`Sys.{item[2].text}` is a column of changes, and {rendering} shows rows",
                detail=text,
                hint="use SELECT STREAM, which shows changes",
            )


def _select_items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each item of the outermost SELECT list."""
    depth, inside = 0, False
    item: list[Token] = []
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if not inside:
            inside = depth == 0 and token.token_type == TokenType.SELECT
        elif depth == 0 and token.token_type in (TokenType.COMMA, TokenType.FROM):
            yield item
            item = []
            if token.token_type == TokenType.FROM:
                return
        else:
            item.append(token)


_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


def _system_item(item: Sequence[Token]) -> tuple[int, System, str] | None:
    """Return the number of tokens of a system column, which one it is, and its type; None for other items."""
    words = [token.text.lower() for token in item]
    if words[:2] == ["sys", "."] and len(words) > 2 and words[2] in _SYSTEM:
        length = 3
        system, kind = _SYSTEM[words[2]]
    elif words[:1] == ["current_timestamp"]:
        length = 3 if words[1:3] == ["(", ")"] else 1
        system, kind = _SYSTEM["emittime"]
        if len(words) == length:
            return None  # without AS it is an ordinary CURRENT_TIMESTAMP, which the binder refuses
    else:
        return None
    rest = words[length:]
    is_named = len(rest) == 1 or (len(rest) == 2 and rest[0] == "as")
    return (length, system, kind) if not rest or is_named else None
