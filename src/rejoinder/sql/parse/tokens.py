"""Split a text into statements, and read the tokens of a statement. Every error has its place in the text."""

from __future__ import annotations

import re

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql
from rejoinder.secret_options import shown_context, shown_line
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.parse.syntax_errors import unreadable

_OPENING = (TokenType.COMMA, TokenType.GROUP_BY, TokenType.SELECT)
_ENDING = (
    *(TokenType.COMMA, TokenType.FROM, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.R_BRACKET),
    *(TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.UNION, TokenType.WHERE),
)
_NAME = re.compile(r"\w+")


def refuse_gaps(text: str) -> None:
    """Raise `InvalidSql` for a list with a missing item, as in `SELECT id, FROM t`, which sqlglot accepts."""
    tokens = sqlglot.tokenize(text, read=SparkSql)
    for position, token in enumerate(tokens):
        after = tokens[position + 1].token_type if position + 1 < len(tokens) else None
        is_select = token.token_type == TokenType.DISTINCT and tokens[position - 1].token_type == TokenType.SELECT
        opens = (token.token_type in _OPENING or is_select) and (after is None or after in _ENDING)
        if opens or (token.token_type == TokenType.L_PAREN and after == TokenType.COMMA):
            before, after_it = text[max(0, token.start - 40) : token.start], text[token.end + 1 : token.end + 41]
            place = shown_context(text, before, text[token.start : token.end + 1], after_it)
            raise InvalidSql(
                f"something is missing after `{token.text}`",
                detail=f"line {token.line}: {place}",
                hint="remove the comma, or add an item after it" if token.text == "," else "add what follows it",
            )


def split_statements(text: str) -> list[list[Token]]:
    """Return the tokens of each statement of a text. Raises `InvalidSql`."""
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except SqlglotError as failure:
        raise unreadable(failure, text) from failure
    result: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            result.append([])
        else:
            result[-1] += _words(token)
    return [part for part in result if part]


def _words(token: Token) -> list[Token]:
    """Split a token of several words: sqlglot makes one token of `PRIMARY KEY`."""
    words = token.text.split()
    if len(words) < 2 or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return [token]
    return [Token(TokenType.VAR, word, token.line, token.col, token.start, token.end, []) for word in words]


class TokenReader:
    """Reads the tokens of one statement from left to right."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    def peek(self) -> str:
        """Return the next word in upper case, without consuming it; empty at the end."""
        return self.tokens[self.at].text.upper() if self.at < len(self.tokens) else ""

    def take(self) -> Token:
        """Consume the next token."""
        if self.at >= len(self.tokens):
            raise self.too_early()
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self) -> str:
        """Consume the next word, and return it in upper case."""
        return self.take().text.upper()

    def expect(self, word: str) -> None:
        """Consume a word. Raises `InvalidSql` if another one is next."""
        token = self.take()
        if token.text.upper() != word:
            raise InvalidSql(
                f"expected `{word}` and found `{token.text}`", detail=self.place(token), hint=f"write {word} there"
            )

    def name(self) -> str:
        """Consume a name."""
        token = self.take()
        quoted = token.token_type == TokenType.IDENTIFIER and token.text.strip()
        plain = token.token_type not in (TokenType.STRING, TokenType.NUMBER) and _NAME.fullmatch(token.text)
        if not quoted and not plain:
            raise InvalidSql(
                f"expected a name and found `{token.text}`",
                detail=self.place(token),
                hint="quote an unusual name with backticks",
            )
        return token.text

    def relation(self) -> str:
        """Consume the name of a relation or of a side output: `view`, `view.late`."""
        name = self.name()
        if self.peek() == ".":
            self.expect(".")
            name = f"{name}.{self.name()}"
        return name

    def names(self) -> tuple[str, ...]:
        """Consume names in parentheses."""
        self.expect("(")
        result = [self.name()]
        while self.peek() == ",":
            self.expect(",")
            result.append(self.name())
        self.expect(")")
        return tuple(result)

    def if_not_exists(self) -> bool:
        """Consume IF NOT EXISTS, and return whether it was there."""
        if self.peek() != "IF":
            return False
        for word in ("IF", "NOT", "EXISTS"):
            self.expect(word)
        return True

    def rest(self) -> str:
        """Return the text from here to the end of the statement."""
        if self.at >= len(self.tokens):
            raise self.too_early()
        return self.text[self.tokens[self.at].start : self.tokens[-1].end + 1]

    def end(self) -> None:
        """Raise `InvalidSql` if anything follows."""
        if self.at < len(self.tokens):
            raise InvalidSql(
                f"unexpected `{self.tokens[self.at].text}` at the end",
                detail=self.place(self.tokens[self.at]),
                hint="put a semicolon between statements",
            )

    def too_early(self) -> InvalidSql:
        """Return the error for an incomplete statement."""
        return InvalidSql(
            "the statement ends too early",
            detail=self.place(self.tokens[-1]),
            hint="complete it, or check for a stray `;`",
        )

    def place(self, token: Token) -> str:
        """Return the place of a token, for messages."""
        return f"line {token.line}: {shown_line(self.text, token.line)}"
