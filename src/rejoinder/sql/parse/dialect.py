"""The SQL dialect: sqlglot's Spark dialect, corrected where it differs from Spark 4, and extended.

- A quote written twice is one quote: `'it''s'`.
- `||` has the precedence and associativity of `+` and `-`.
- `window` is an ordinary function and name, except in the clause WINDOW name AS (…).
- ASOF JOIN has a MATCH_CONDITION; LEFT ASOF JOIN is ASOF LEFT JOIN.
- TUMBLE, HOP, IMPOSE_ORDER and ENRICH take a relation: `TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE)`.
- PARTITION BY may follow that relation; it is read as one more argument, a call of `PARTITION_BY`.
- Flink's older TUMBLE_START, TUMBLE_END, HOP_START and HOP_END are WINDOW_START and WINDOW_END of a window.
- A call of a function is read as it is written: `Anonymous` with name and arguments in order, for the registry of
  functions to compile. sqlglot's own classes are used for the functions in `_BY_CLASS` and `_AGGREGATES` only.
- EXPLAIN and SHOW are ordinary words, so that sqlglot tokenizes what follows them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.parsers.spark2 import build_as_cast
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.sql.parse.pipe_syntax import PipeParser

WRITTEN = "written name"
"""In the meta of a call: the name in the text. Also marks IS NOT, and a field of a struct that has no name."""
SUFFIX = "suffix"
"""The written name of a cast that is the suffix of a number, as in `1L`."""
_SUFFIXES = frozenset(("L", "S", "Y", "D", "F", "BD"))
UNIT = "written unit"
"""In the meta of a call with a unit of time: the unit in the text, which sqlglot writes in capitals."""
_TABLE_FUNCTIONS = ("CHANGES", "CUMULATE", "ENRICH", "HOP", "IMPOSE_ORDER", "LATEST", "SESSION", "TUMBLE")
_CLASSES = """
ABS ADD_MONTHS AND ANY_VALUE ARRAY ARRAY_CONTAINS ARRAY_SIZE ASCII BIT_COUNT BOOLEAN CEIL CEILING
CHARACTER_LENGTH CHARINDEX CHAR_LENGTH COALESCE CONCAT CONCAT_WS CONTAINS COUNT CURDATE CURRENT_DATE
CURRENT_TIME CURRENT_TIMESTAMP CURRENT_TIMEZONE CURRENT_USER DATE DATEADD DATEDIFF DATE_ADD DATE_DIFF
DATE_FROM_UNIX_DATE DATE_SUB DATE_TRUNC DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR DIV DOUBLE ELEMENT_AT ENDSWITH
EXPLODE EXPLODE_OUTER EXTRACT FIRST FIRST_VALUE FLOAT FLOOR GREATEST GROUPING GROUPING_ID HOUR IF
IFNULL ILIKE INLINE INSERT INSTR INT ISNAN LAST LAST_DAY LAST_VALUE LCASE LEAST LEFT LEN LENGTH LIKE LOCATE LOWER
LPAD LTRIM MAX MIN MINUTE MOD MONTH NAMED_STRUCT NULLIF NVL NVL2 OR POSEXPLODE POSEXPLODE_OUTER QUARTER RAND RANDN
RANDOM REGEXP_EXTRACT REGEXP_LIKE REPEAT REPLACE REVERSE RIGHT RLIKE ROUND ROW_NUMBER RPAD RTRIM SECOND SIGN SIGNUM SIZE
SPLIT_PART SQRT STACK STARTSWITH STRING STRUCT SUBSTR SUBSTRING TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIMESTAMP_LTZ
TIMESTAMP_NTZ TO_DATE TO_TIMESTAMP TRANSLATE TRIM TRUNC UCASE UNIX_DATE UNIX_MICROS UNIX_MILLIS
UNIX_SECONDS UNIX_TIMESTAMP UPPER UUID WEEKOFYEAR YEAR
"""
_BY_CLASS = frozenset(_CLASSES.split())
"""Functions that are compiled from sqlglot's classes."""
_AGGREGATES = (
    *(exp.AnyValue, exp.Avg, exp.Count, exp.CountIf, exp.LogicalAnd, exp.LogicalOr, exp.Max, exp.Min, exp.RegrCount),
    *(exp.Sum, exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Ntile),
    *(exp.CumeDist, exp.DenseRank, exp.PercentRank, exp.Rank, exp.Grouping, exp.GroupingId),
)
"""Aggregates and window functions that are bound from sqlglot's classes."""
_BY_NAME = frozenset(
    (
        *("CHAR", "CHR", "DECODE", "GROUP_CONCAT", "INITCAP", "LISTAGG", "MAX_BY", "MIN_BY", "OVERLAY"),
        *("APPROX_PERCENTILE", "PERCENTILE", "PERCENTILE_APPROX", "STRING_AGG"),
    )
)
"""Functions that sqlglot parses in a way of its own, which is not Spark's."""
_WITH_FORMAT = ("TO_DATE", "TO_TIMESTAMP", "UNIX_TIMESTAMP")
PARTITION_BY = "PARTITION_BY"
"""The call that holds the PARTITION BY of a relation that is an argument."""
_AFTER_TABLE = (TokenType.L_PAREN, TokenType.VAR, TokenType.IDENTIFIER)


def _table_function(parser: Any) -> exp.Expr:
    """Parse a function whose first argument may be a relation: TABLE name, TABLE (query), TABLE f(…)."""
    name, token = parser._tokens[parser._index - 2].text, parser._curr
    arguments: list[exp.Expr] = []
    is_word = token is not None and token.token_type != TokenType.IDENTIFIER and token.text.upper() == "TABLE"
    if is_word and parser._next is not None and parser._next.token_type in _AFTER_TABLE:
        parser._advance()
        if parser._match(TokenType.L_PAREN):
            arguments.append(parser._parse_select() or parser._parse_table())
            parser._match_r_paren()
        else:
            arguments.append(parser._parse_table(alias_tokens=set()))
        if parser._match(TokenType.PARTITION_BY):
            key = parser._parse_bitwise()  # one column, or several in parentheses
            keys = key.expressions if isinstance(key, exp.Tuple) else [key.unnest()] if key is not None else []
            arguments.append(exp.Anonymous(this=PARTITION_BY, expressions=keys))
        parser._match(TokenType.COMMA)
    arguments += parser._parse_function_args(True)
    return exp.Anonymous(this=name, expressions=arguments)


def _has_class(name: str, build: Callable[..., Any]) -> bool:
    owner = getattr(build, "__self__", None)
    return name in _BY_CLASS or owner in _AGGREGATES


def _with_format(build: Callable[..., Any], name: str) -> Callable[..., exp.Expr]:
    """Read a call with a format as it is written: sqlglot would translate the format."""
    needs_dialect = "dialect" in build.__code__.co_varnames

    def read(parts: list[exp.Expr], dialect: Any) -> exp.Expr:
        if len(parts) > 1:
            return exp.Anonymous(this=name, expressions=parts)
        node: exp.Expr = build(parts, dialect=dialect) if needs_dialect else build(parts)
        return node

    return read


def _end_of_window(window: str, end: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Rewrite `TUMBLE_START(ts, size)` as `WINDOW_START(TUMBLE(ts, size))`."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        return exp.Anonymous(this=f"WINDOW_{end}", expressions=[exp.Anonymous(this=window, expressions=arguments)])

    return build


LONGEST_CACHED = 1 << 20
"""In characters: the tokens of longer texts are not cached."""


@lru_cache(maxsize=8)
def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(SparkSql().tokenizer().tokenize(text))


def _with_window_clause(tokens: list[Token]) -> list[Token]:
    """Make WINDOW a keyword where it begins a clause: before a name, AS and a parenthesis."""
    for at, token in enumerate(tokens[:-3]):
        follows = [each.token_type for each in tokens[at + 2 : at + 4]]
        if follows == [TokenType.ALIAS, TokenType.L_PAREN] and token.text.upper() == "WINDOW":
            place = token.line, token.col, token.start, token.end
            tokens[at] = Token(TokenType.WINDOW, token.text, *place, list(token.comments))
    return tokens


_BEFORE_ALL = (TokenType.SELECT, TokenType.GROUP_BY, TokenType.COMMA)
_AFTER_ALL = (TokenType.COMMA, TokenType.FROM)


def _with_columns_called_all(tokens: list[Token]) -> list[Token]:
    """Make ALL a name where only a column can be meant: `SELECT all, city`, `GROUP BY all, city`."""
    for at, token in enumerate(tokens[1:-1], 1):
        is_item = tokens[at - 1].token_type in _BEFORE_ALL and tokens[at + 1].token_type in _AFTER_ALL
        if token.token_type == TokenType.ALL and is_item:
            place = token.line, token.col, token.start, token.end
            tokens[at] = Token(TokenType.VAR, token.text, *place, list(token.comments))
    return tokens


class SparkSql(Spark):
    """The dialect of every statement."""

    def tokenize(self, sql: str, dialect: Any = None) -> list[Token]:
        """Tokenize a text. The last texts are cached, because a statement is tokenized several times."""
        is_cached = not dialect and len(sql) <= LONGEST_CACHED
        tokens = list(_tokens(sql)) if is_cached else super().tokenize(sql, dialect)
        return _with_columns_called_all(_with_window_clause(tokens))

    class Tokenizer(Spark.Tokenizer):
        """Strings as Spark 4 reads them."""

        STRING_ESCAPES: ClassVar[list[str]] = ["'", '"', "\\"]
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in ("SESSION", "WINDOW")},
            "MATCH_CONDITION": TokenType.MATCH_CONDITION,
        }

    class Parser(PipeParser):
        """Operators with Spark's precedence, and the extensions."""

        TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = SparkParser.TABLE_ALIAS_TOKENS - {TokenType.MATCH_CONDITION}
        # The binder refuses a missing ON.
        ADD_JOIN_ON_TRUE: ClassVar[bool] = False
        TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
            **{name: build for name, build in SparkParser.FUNCTIONS.items() if _has_class(name, build)},
            **{name: _with_format(SparkParser.FUNCTIONS[name], name) for name in _WITH_FORMAT},
            "REGEXP": SparkParser.FUNCTIONS["RLIKE"],
            **{name: build_as_cast(name) for name in ("BIGINT", "BINARY", "DECIMAL", "SMALLINT", "TINYINT")},
            **{f"{name}_{end}": _end_of_window(name, end) for name in ("TUMBLE", "HOP") for end in ("START", "END")},
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            **{name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name not in _BY_NAME},
            **dict.fromkeys(_TABLE_FUNCTIONS, _table_function),
        }

        def _parse_function_call(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            """Parse a call, and keep the name that was written: Spark names columns after it."""
            at = self._index
            result: exp.Expr | None = super()._parse_function_call(*arguments, **options)
            words, node = self._tokens[at : self._index], result
            while isinstance(node, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
                node = node.this
            if node is None or len(words) < 3 or words[1].token_type != TokenType.L_PAREN:
                return result
            name = words[0].text
            is_sentence = isinstance(node, exp.StrPosition) and any(word.token_type == TokenType.IN for word in words)
            node.meta[WRITTEN] = "locate" if is_sentence else name
            if "unit" in node.args or isinstance(node, exp.Extract):
                node.meta[UNIT] = words[-2 if name.upper() == "TRUNC" else 2].text
            return result

        def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
            """Parse what follows an operand, and tell `1L` from `1::BIGINT`, which sqlglot makes of it."""
            words = self._tokens[self._index : self._index + 2]
            result: exp.Expr | None = super()._parse_column_ops(this)
            is_suffix = len(words) == 2 and words[0].token_type == TokenType.DCOLON
            if is_suffix and words[1].text.upper() in _SUFFIXES and isinstance(result, exp.Cast):
                result.meta[WRITTEN] = SUFFIX
            return result

        def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
            """Parse VALUES; sqlglot takes the alias after a row without parentheses for one of the row."""
            result: exp.Values | None = super()._parse_derived_table_values(allow_value_synonym)
            row = result.expressions[-1] if result is not None and result.expressions else None
            last = row.expressions[-1] if isinstance(row, exp.Tuple) and row.expressions else None
            if result is not None and isinstance(last, exp.Alias) and not result.alias:
                known = result.args.get("alias")
                columns = known.args.get("columns") if known is not None else None
                result.set("alias", exp.TableAlias(this=last.args["alias"], columns=columns))
                last.replace(last.this)
            return result

        def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
            """Parse IS …, and tell IS NOT NULL from NOT … IS NULL."""
            is_negated = self._curr.token_type == TokenType.NOT
            result: exp.Expr | None = super()._parse_is(this)
            if is_negated and isinstance(result, exp.Not):
                result.this.meta[WRITTEN] = "is not"
            return result

        def _to_prop_eq(self, expression: exp.Expr, index: int) -> exp.Expr:
            """Name a field of a struct that was written without a name, and mark that it was."""
            result: exp.Expr = super()._to_prop_eq(expression, index)
            result.meta[WRITTEN] = ""
            return result

        def _parse_join_parts(self) -> tuple[Token | None, Token | None, Token | None]:
            """Parse the words before JOIN; ASOF may follow LEFT."""
            method, side, kind = super()._parse_join_parts()
            if method is None and side is not None and self._match(TokenType.ASOF):
                method = self._prev
            return method, side, kind
