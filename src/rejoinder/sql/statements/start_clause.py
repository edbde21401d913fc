"""Parse STARTING AT, before the AS of a view or at the end of a query.

CREATE VIEW v STARTING AT NOW AS SELECT …
SELECT … STARTING AT TIMESTAMP '2026-01-31 00:00:00'
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql
from rejoinder.sql.statements.alter_source import AlterSourceReader
from rejoinder.sql.statements.start_text import checked_start


class StartReader(AlterSourceReader):
    """Reads statements that may have STARTING AT."""

    def starting(self) -> str | None:
        """Parse STARTING AT before the AS of a view; None if it is absent. Raises `InvalidSql`."""
        if self.peek() != "STARTING":
            return None
        self.expect("STARTING")
        self.expect("AT")
        first = self.at
        while self.at < len(self.tokens) and self.peek() != "AS":
            self.at += 1
        return self._start(first, self.at if self.at < len(self.tokens) else first)

    def trailing_start(self) -> str | None:
        """Split STARTING AT off the end of a query; None if it is absent. Raises `InvalidSql`."""
        depth = 0
        for position in range(self.at, len(self.tokens) - 1):
            token = self.tokens[position]
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth == 0 and _is_word(token, "STARTING") and _is_word(self.tokens[position + 1], "AT"):
                start = self._start(position + 2, len(self.tokens))
                self.tokens = self.tokens[:position]
                return start
        return None

    def _start(self, first: int, end: int) -> str:
        if first >= end:
            raise InvalidSql(
                "STARTING AT has no start",
                detail=self.place(self.tokens[min(first, len(self.tokens) - 1)]),
                hint="as in STARTING AT NOW, STARTING AT EPOCH 12, STARTING AT TIMESTAMP '2026-01-31 00:00:00'",
            )
        return checked_start(self.text[self.tokens[first].start : self.tokens[end - 1].end + 1])


def _is_word(token: Token, word: str) -> bool:
    return token.text.upper() == word and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
