"""Where in a text an error is."""

from __future__ import annotations

import doctest

import pytest

from rejoinder.errors import RejoinderError
from rejoinder.sql.parse import error_positions
from rejoinder.sql.parse.error_positions import place_of, spans_of
from rejoinder.testing import Driver

SOURCE = "CREATE STREAM s (k INT, t STRING);\n"


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(error_positions).failed == 0


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("CREATE VIEW v AS\n  SELECT kk\n  FROM s", 3, "kk"),
        ("CREATE VIEW v SELECT k FROM s", 2, "SELECT"),
        ("CREATE VIEW v AS SELECT k,\nFROM s", 2, ","),
        ("CREATE VIEW v AS SELECT k\nFORM s x y", 3, "s"),
        ("SELECT 1 AS a, -- it's\n  'open FROM s", 3, "'"),
        ("CREATE VIEW v AS SELECT upperr(t) FROM s", 2, "upperr"),
        ("CREATE TABLE c (k INT,\n  PRIMARY KEY (kk))", 3, "kk"),
        ("SELECT a.k FROM s a JOIN s b\n  ON a.t = t", 3, "t"),
        ("SELECT\n  * FROM s a, s b WHERE a.k = b.k", 3, "*"),
    ],
)
def test_the_word_is_found(text: str, line: int, word: str) -> None:
    whole = SOURCE + text
    with pytest.raises(RejoinderError) as raised:
        Driver().sql(whole)
    place = place_of(whole, raised.value)
    assert place is not None
    assert (place.line, place.text[place.column - 1 :][: place.length]) == (line, word)


@pytest.mark.parametrize(
    ("query", "fact", "hint"),
    [
        ("SELECT k FORM s", "unexpected `s`", "did you mean `FROM` instead of `FORM`?"),
        ("SELECT k FROM s WERE k > 1", "unexpected `k`", "did you mean `WHERE` instead of `WERE`?"),
        ("SELECT k FROM s GRUOP BY k", "unexpected `BY`", "did you mean `GROUP` instead of `GRUOP`?"),
        ("SELECT a.k FROM s a JION s b ON a.k = b.k", "unexpected `JION`", "did you mean `JOIN` instead of `JION`?"),
        ("SELECT k FROM orders 5", "unexpected `5`", "check the text around the marked word"),
        ("SELECT (k FROM s", "expected `)` and found `FROM`", "check the text around the marked word"),
        ("SELECT k FROM s /* open", "a comment is not closed", "close it"),
        ('SELECT k FROM s WHERE t = "open', "a quote is not closed", "close it"),
    ],
)
def test_what_is_not_sql_is_said_in_plain_words(query: str, fact: str, hint: str) -> None:
    with pytest.raises(RejoinderError) as raised:
        Driver().sql(SOURCE + query)
    assert raised.value.fact == fact and hint in (raised.value.hint or "")


def test_an_error_without_a_word_is_at_its_statement() -> None:
    text = SOURCE + "CREATE VIEW v AS SELECT k FROM s"
    error = RejoinderError("this is not to be done")
    assert place_of(text, error) is None
    place = place_of(text, error, spans_of(text)[1])
    assert place is not None and (place.line, place.column, place.length) == (2, 1, 6)


def test_a_line_with_a_secret_is_shown_without_it() -> None:
    text = "CREATE SINK s FROM v USING jdbc OPTIONS (password 'hunter2', nope 'x')"
    place = place_of(text, RejoinderError("option `nope` is not known"))
    assert place is not None and "hunter2" not in place.text and place.length == 0
