"""Locate an error in a text of statements: find the word that its message quotes among the tokens."""

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
    """A word in a text."""

    line: int
    """From 1."""
    column: int
    """From 1."""
    length: int
    """0 if a secret in the line was redacted, so that columns do not match."""
    text: str
    """The whole line, with secrets redacted."""


@dataclass(frozen=True)
class Span:
    """A statement in a text, by its first and last character."""

    start: int
    end: int


def spans_of(text: str) -> list[Span]:
    """Return the statements of a text, in the order of `parse_statements`."""
    return [Span(tokens[0].start, tokens[-1].end) for tokens in split_statements(text)]


def place_of(text: str, error: RejoinderError, span: Span | None = None) -> Place | None:
    """Locate an error in a text, or in one statement of it; None if it cannot be located.

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
    start = -1 if marked is None else text.find(marked["before"] + marked["word"])
    if marked is not None and start >= 0:
        first = start + len(marked["before"])
        return _at(text, first, first + len(marked["word"]))
    token = _named(inside, error, text)
    if token is None and span is None:
        return None
    if token is None:
        token = inside[-1] if "too early" in error.fact else inside[0]
    return _at(text, token.start, token.end + 1)


def _named(tokens: list[Token], error: RejoinderError, text: str) -> Token | None:
    """Return the first token that the message quotes, on the line of its detail if that is a line of this text."""
    quoted = _LINE.match(error.detail or "")
    number = 0 if quoted is None else int(quoted[1])
    line = next(iter(text.splitlines()[number - 1 : number]), None) if number else None
    if quoted is not None and line is not None and quoted["text"] == redacted_text(line.strip()):
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
    """Return the tokens of the fragment that a detail quotes, as in: in `a.k = b.k` (line 1)."""
    fragment = _FRAGMENT.search(detail)
    if fragment is None:
        return []
    wanted = re.findall(r"\w+|[^\w\s]+", fragment[1].lower())
    words = [token.text.lower() for token in tokens]
    starts = range(len(words) - len(wanted) + 1)
    start = next((start for start in starts if words[start : start + len(wanted)] == wanted), None)
    return [] if start is None else tokens[start : start + len(wanted)]


def _at(text: str, first: int, last: int) -> Place:
    start, end = text.rfind("\n", 0, first) + 1, text.find("\n", first)
    line = text[start : end if end >= 0 else len(text)].rstrip("\r")
    number, shown = text.count("\n", 0, first) + 1, redacted_text(line)
    length = max(1, min(last - first, len(line) - (first - start)))
    return Place(number, first - start + 1, length if shown == line else 0, shown)
