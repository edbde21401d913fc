"""Spark's SQL as sqlglot reads it, mended where sqlglot's own Spark dialect reads something else than Spark 4 does.

- A quote written twice is one quote: `'it''s'`.
- `||` stands beside `+` and `-`, and goes from left to right with them.
- `window` is a function and a name like others.
- ASOF JOIN has a MATCH_CONDITION.
- EXPLAIN and SHOW are words like others: what follows them is read, not taken as one string.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType


class SparkSql(Spark):
    """The dialect that every statement is read with."""

    class Tokenizer(Spark.Tokenizer):
        """Strings as Spark 4 reads them."""

        STRING_ESCAPES: ClassVar[list[str]] = ["'", '"', "\\"]
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word != "WINDOW"},
            "MATCH_CONDITION": TokenType.MATCH_CONDITION,
        }

    class Parser(SparkParser):
        """Operators in Spark's order."""

        TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = SparkParser.TABLE_ALIAS_TOKENS - {TokenType.MATCH_CONDITION}
        # A missing ON is ours to refuse.
        ADD_JOIN_ON_TRUE: ClassVar[bool] = False
        TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
