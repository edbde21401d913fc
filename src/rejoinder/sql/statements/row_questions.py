"""Parse statements about rows of a view: SUBSCRIBE follows its changes, WHY names the causes of rows.

SUBSCRIBE [TO] view [{ AS OF | FROM } epoch] [WHERE condition]
WHY view [AS OF epoch] [WHERE condition]
WHY NOT view WHERE column = value AND …
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from rejoinder.errors import InvalidSql
from rejoinder.sql.statements.function_statements import FunctionReader


@dataclass(frozen=True)
class Subscribe:
    """SUBSCRIBE. Without an epoch, only later changes follow."""

    view: str
    where: str | None = None
    start: int | None = None
    """The first epoch to show."""
    as_of: int | None = None
    """The epoch whose content is shown first, before later changes."""


@dataclass(frozen=True)
class Why:
    """WHY: what makes the rows of a view that fulfil a condition, now or as of an epoch."""

    view: str
    where: str | None = None
    as_of: int | None = None


@dataclass(frozen=True)
class WhyNot:
    """WHY NOT: at which step a row with these values fails."""

    view: str
    where: str | None = None


class RowQuestionReader(FunctionReader):
    """Reads statements about rows of a view."""

    def subscribe(self) -> Subscribe:
        """Parse what follows SUBSCRIBE. The epoch may also follow the condition."""
        if self.peek() == "TO":
            self.expect("TO")
        view = self.relation()
        start, as_of = self._trailing_epoch()
        if self.peek() in ("FROM", "AS"):
            word, epoch = self._epoch_clause()
            start, as_of = (epoch, None) if word == "FROM" else (None, epoch)
        return Subscribe(view, self.where(), start, as_of)

    def why(self) -> Why | WhyNot:
        """Parse what follows WHY. The epoch may also follow the condition."""
        if self.peek() == "NOT":
            self.expect("NOT")
            return WhyNot(self.relation(), self.where())
        view = self.relation()
        _, as_of = self._trailing_epoch()
        if self.peek() == "AS":
            _, as_of = self._epoch_clause()
        return Why(view, self.where(), as_of)

    def where(self) -> str | None:
        """Parse WHERE and a condition up to the end; None if nothing follows. Raises `InvalidSql`."""
        if self.at >= len(self.tokens):
            return None
        self.expect("WHERE")
        return self.rest()

    def _trailing_epoch(self) -> tuple[int | None, int | None]:
        """Split FROM epoch or AS OF epoch off the end of the statement."""
        words = [token.text.upper() for token in self.tokens[self.at :]]
        if not words or self.tokens[-1].token_type != TokenType.NUMBER or "WHERE" not in words:
            return None, None
        if words[-2:-1] == ["FROM"] and words[-3:-2] != ["DISTINCT"]:  # x IS DISTINCT FROM 3 is a condition
            length = 2
        elif words[-3:-1] == ["AS", "OF"]:
            length = 3
        else:
            return None, None
        epoch = self._epoch(len(self.tokens) - 1)
        self.tokens = self.tokens[:-length]
        return (epoch, None) if length == 2 else (None, epoch)

    def _epoch_clause(self) -> tuple[str, int]:
        word = self.word()
        if word == "AS":
            self.expect("OF")
        self.take()
        return word, self._epoch(self.at - 1)

    def _epoch(self, position: int) -> int:
        token = self.tokens[position]
        if not token.text.isdigit():
            raise InvalidSql(
                f"`{token.text}` is not the number of an epoch",
                detail=self.place(token),
                hint="as in SUBSCRIBE view FROM 12; SELECT STREAM * FROM view shows the epochs of its changes",
            )
        return int(token.text)
