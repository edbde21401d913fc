"""The script that asks Spark's golden queries, on a file of our own: what is right, wrong and refused is told apart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.oracle.golden_sql.__main__ import Score
from tests.oracle.golden_sql.golden_files import Dialect, golden_files
from tests.oracle.golden_sql.golden_relations import Relations
from tests.oracle.golden_sql.golden_text import row_text, same_rows

FILE = """-- Automatically generated
-- !query
create temporary view t as select * from values (1, 'a'), (2, null), (2, 'b') as t(k, s)
-- !query schema
struct<>
-- !query output



-- !query
-- a comment
select k, count(*), avg(k) from t group by k
-- !query schema
struct<k:int,count(1):bigint,avg(k):double>
-- !query output
1	1	1.0
2	2	2.0


-- !query
select s from t
-- !query schema
struct<s:string>
-- !query output
a
b
c


-- !query
select no_such_function(k) from t
-- !query schema
struct<x:int>
-- !query output
1


-- !query
SET spark.sql.legacy.x = true
-- !query schema
struct<>
-- !query output



-- !query
select 1
-- !query schema
struct<1:int>
-- !query output
2
"""


def test_queries_are_asked_and_compared(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "joins.sql.out").write_text(FILE, encoding="utf-8")
    ((name, entries),) = golden_files(tmp_path, None)
    score, relations, dialect = Score(), Relations(), Dialect()
    for entry in entries:
        dialect.apply(entry.sql)
        if not entry.is_query:
            relations.apply(entry.sql)
        elif dialect.is_default:
            score.ask(entry, relations, {}, show=False)
    assert name == "joins.sql"
    assert (score.queries, score.planned, score.right) == (3, 2, 1)
    assert score.wrong == ["joins.sql 3"] and list(score.refusals) == ["the function `…` is not supported"]
    assert score.other_schema == []


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1e7, pa.float64(), "1.0E7"),
        (0.1, pa.float32(), "0.1"),
        (123456.0, pa.float64(), "123456.0"),
        (-1.5e-5, pa.float64(), "-1.5E-5"),
        (None, pa.string(), "NULL"),
        (["a", None], pa.list_(pa.string()), '["a",null]'),
        ({"x": 1, "y": True}, pa.struct([("x", pa.int32()), ("y", pa.bool_())]), '{"x":1,"y":true}'),
    ],
)
def test_values_are_shown_as_in_golden_files(value: object, kind: pa.DataType, text: str) -> None:
    assert row_text({"v": value}, pa.schema([("v", kind)])) == text


def test_only_the_last_digit_of_a_double_may_differ() -> None:
    assert same_rows(["b\t0.1", "a\t2"], "a\t2\nb\t0.10000000000000002")
    assert not same_rows(["a\t2"], "a\t3")
    assert not same_rows(["a\t0.1"], "a\t0.1000001")
