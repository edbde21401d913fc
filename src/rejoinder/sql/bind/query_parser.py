"""Parse one query, without its EMIT clause, into a sqlglot syntax tree."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rejoinder.errors import InvalidSql
from rejoinder.ir.user_functions import UserFunction
from rejoinder.sql.bind.emit_clause import split_emission
from rejoinder.sql.functions.user_calls import mark_calls
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.parse.foreign_spellings import refuse_foreign_clauses
from rejoinder.sql.parse.syntax_errors import unreadable
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.sql.parse.tokens import refuse_gaps


def parse_query(text: str, functions: Sequence[UserFunction] = ()) -> exp.Query:
    """Parse one query, without its EMIT clause, with the calls of declared functions marked. Raises `InvalidSql`."""
    query = with_stack([text], _query, text)
    mark_calls(query, functions)
    return query


def _query(text: str) -> exp.Query:
    text, _ = split_emission(text)
    try:
        refuse_gaps(text)
        refuse_foreign_clauses(sqlglot.tokenize(text, read=SparkSql), text)
        node = sqlglot.parse_one(text, read=SparkSql)
    except SqlglotError as failure:
        raise unreadable(failure, text) from failure
    except (IndexError, ValueError) as failure:  # raised by sqlglot for date_trunc() and map(x)
        fact, hint = "a function has a wrong number of arguments", "check the function calls of the query"
        raise InvalidSql(fact, detail=text.strip(), hint=hint) from failure
    if isinstance(node, exp.Values):
        return exp.Subquery(this=node)
    if not isinstance(node, exp.Query):
        raise InvalidSql("this is not a query", detail=text.strip(), hint="a query starts with SELECT or WITH")
    return node
