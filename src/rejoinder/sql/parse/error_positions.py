"""Where in a text of statements an error is: the word that its message quotes, found among the tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from rejoinder.errors import RejoinderError
from rejoinder.secret_options import redacted_text
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.parse.syntax_errors import unclosed
from rejoinder.sql.parse.tokens import split_statements

_QUOTED = re.compile(r"`([^`]+)`")
_FOUND = re.compile(r"found `([^`]+)`")
_NO_COLUMN = re.compile(r"has no column `([^`]+)`")
_FRAGMENT = re.compile(r"in `([^`]+)` \(line \d+\)")
_MARKED = re.compile(r"line \d+[^:]*: … (?P<before>.*)>>(?P<word>.+?)<<", re.DOTALL)
_LINE = re.compile(r"line (\d+)(?:, column \d+)?: (?P<text>.*)", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """A word in a text: its line and column from 1, its length, and the whole line, in which secrets are hidden.

    `length` 0: the line holds a secret, so that columns would not fit.
    """

    line: int
    column: int
    length: int
    text: str


@dataclass(frozen=True)
class Span:
    """A statement in a text, by its first and last character."""

    start: int
    end: int


def spans_of(text: str) -> list[Span]:
    """The statements of a text, in the order of `parse_statements`."""
    return [Span(tokens[0].start, tokens[-1].end) for tokens in split_statements(text)]


def place_of(text: str, error: RejoinderError, span: Span | None = None) -> Place | None:
    """Where an error about a text, or about one statement of it, is; None if that cannot be told.

    >>> place_of("SELECT id\\nFROM ordrs", RejoinderError("there is no relation `ordrs`"))
    Place(line=2, column=6, length=5, text='FROM ordrs')
    """
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except SqlglotError:
        opened = unclosed(text)
        return None if opened is None else _at(text, *opened)
    inside = [token for token in tokens if span is None or span.start <= token.start <= span.end]
    if not inside:
        return None
    marked = _MARKED.match(error.detail or "")
    found = -1 if marked is None else text.find(marked["before"] + marked["word"])
    if marked is not None and found >= 0:
        first = found + len(marked["before"])
        return _at(text, first, first + len(marked["word"]))
    token = _named(inside, error, text)
    if token is None and span is None:
        return None
    if token is None:
        token = inside[-1] if "too early" in error.fact else inside[0]
    return _at(text, token.start, token.end + 1)


def _named(tokens: list[Token], error: RejoinderError, text: str) -> Token | None:
    """The first token that the message quotes; on the line that its detail gives, if it gives one of this text."""
    told = _LINE.match(error.detail or "")
    number = 0 if told is None else int(told[1])
    line = next(iter(text.splitlines()[number - 1 : number]), None) if number else None
    if told is not None and line is not None and told["text"] == redacted_text(line.strip()):
        tokens = [token for token in tokens if token.line == number] or tokens
    if "appears twice in the result" in error.fact and any(token.text == "*" for token in tokens):
        return next(token for token in tokens if token.text == "*")
    tokens = _quoted_in(tokens, error.detail or "") or tokens
    for name in [*_FOUND.findall(error.fact), *_NO_COLUMN.findall(error.fact), *_QUOTED.findall(error.fact)]:
        word = name.rpartition(".")[2].lower() if "." in name else name.lower()
        for token in tokens:
            if token.text.lower() == word:
                return token
    return None


def _quoted_in(tokens: list[Token], detail: str) -> list[Token]:
    """The tokens of the piece of text that a detail quotes, as in: in `a.k = b.k` (line 1); none if it is not found."""
    fragment = _FRAGMENT.search(detail)
    if fragment is None:
        return []
    wanted = re.findall(r"\w+|[^\w\s]+", fragment[1].lower())
    words = [token.text.lower() for token in tokens]
    starts = range(len(words) - len(wanted) + 1)
    at = next((at for at in starts if words[at : at + len(wanted)] == wanted), None)
    return [] if at is None else tokens[at : at + len(wanted)]


def _at(text: str, first: int, last: int) -> Place:
    start, end = text.rfind("\n", 0, first) + 1, text.find("\n", first)
    line = text[start : end if end >= 0 else len(text)].rstrip("\r")
    number, shown = text.count("\n", 0, first) + 1, redacted_text(line)
    length = max(1, min(last - first, len(line) - (first - start)))
    return Place(number, first - start + 1, length if shown == line else 0, shown)
