"""What a STREAM says of its changes: `Sys.EmitTime`, `Sys.Undo` and `Sys.Epoch` as items of the SELECT list.

Such an item is a typed NULL while the query is planned and run, so that it keeps its place and its name; the rendering
fills it in. CURRENT_TIMESTAMP as an item of its own is the emit time too: it is what the clock said.
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
    """The query with placeholders for system items, and what stands behind each of their names.

    >>> split_system_items("SELECT id, Sys.Undo AS gone FROM v")
    ('SELECT id, CAST(NULL AS BOOLEAN) AS gone FROM v', {'gone': 'undo'})
    """
    if any(table.alias_or_name.lower() == "sys" for table in parse_query(text).find_all(exp.Table)):
        return text, {}
    found: dict[str, System] = {}
    result, done = "", 0
    for item in _select_items(sqlglot.tokenize(text, read=SparkSql)):
        head = _system_item(item)
        if head is None:
            continue
        length, system, kind = head
        rest = item[length:]
        name = rest[-1].text if rest else item[length - 1].text
        if name.lower() in (known.lower() for known in found):
            hint = "give one of them another name with AS"
            raise InvalidSql(f"column `{name}` appears twice in the result", detail=text, hint=hint)
        found[name] = system
        alias = "" if rest else f" AS `{name}`"
        result += text[done : item[0].start] + f"CAST(NULL AS {kind}){alias}"
        done = item[length - 1].end + 1
    return result + text[done:], found


def refuse_system_items(text: str, rendering: str) -> None:
    """Refuse `Sys.…` in a rendering that shows rows and not changes."""
    for item in _select_items(sqlglot.tokenize(text, read=SparkSql)):
        if len(item) >= 3 and _system_item(item) is not None and item[0].text.lower() == "sys":
            raise InvalidSql(
                f"`Sys.{item[2].text}` says something of a change, and {rendering} shows rows",
                detail=text,
                hint="SELECT STREAM shows changes",
            )


def _select_items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The items of the outermost SELECT list, each as its tokens."""
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
    """How many tokens name the system value, which one it is, and its type; None for other items."""
    words = [token.text.lower() for token in item]
    if words[:2] == ["sys", "."] and len(words) > 2 and words[2] in _SYSTEM:
        length = 3
        system, kind = _SYSTEM[words[2]]
    elif words[:1] == ["current_timestamp"]:
        length = 3 if words[1:3] == ["(", ")"] else 1
        system, kind = _SYSTEM["emittime"]
        if len(words) == length:
            return None  # without a name it is what it is elsewhere: refused
    else:
        return None
    rest = words[length:]
    is_named = len(rest) == 1 or (len(rest) == 2 and rest[0] == "as")
    return (length, system, kind) if not rest or is_named else None
