"""What batch Spark answers, and what we answer: name, type, and value or failure of every row.

The corpus is `expressions.yaml`. What differs and cannot be fixed is refused, and has an entry that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.deep import DEEP, seeds
from tests.spark.awkward_values import awkward_table
from tests.spark.conformance import FAILED, batch_session, differences, our_answer, register, spark_answers
from tests.spark.corpus import CLOSE, EQUAL, LOUDER, REFUSED, WRONG
from tests.spark.random_values import drawn_table, random_table

pytestmark = pytest.mark.slow

_ON_RANDOM_VALUES = """
round(x); round(x, 2); round(x, 6); round(f, 3); floor(x); ceil(x); sqrt(abs(x)); x / y; x % y; pmod(x, y); x * y + 1
cast(x as decimal(38,6)); cast(x as decimal(30,12)); cast(f as decimal(38,8)); cast(x as bigint); cast(x as float)
cast(a as double); cast(c as double); cast(z as double); cast(z as float); cast(l as double); cast(l as float)
a / b; a / c; c / a; a / 3; a / h; c / c; z / 3; z / a; l / a; a * b; c * c; a + z; c - z; a % b; pmod(c, b)
cast(z as decimal(20,2)); try_cast(c as decimal(10,1)); cast(c as bigint); cast(z as string); ceil(b); round(z, 5)
cast(s as double); cast(s as float); cast(s as decimal(38,6)); l div h; l % h; l * h; a * x; c > x; x = cast(x as float)
cast(t as string); weekofyear(t); date_trunc('week', t); t + interval 1 month; t - interval 11 months; last_day(t)
extract(second from t); unix_timestamp(t); cast(t as double); cast(cast(t as string) as timestamp)
"""


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> SparkSession:
    """A session of its own on the shared JVM, with the two tables."""
    return batch_session(spark)


@pytest.mark.parametrize("topic", EQUAL)
def test_answers_are_spark_s(batch: SparkSession, topic: str) -> None:
    table = awkward_table()
    answers = spark_answers(batch, "awkward", EQUAL[topic])
    differing = {}
    for text in EQUAL[topic]:
        if found := differences(answers[text], our_answer(text, table)):
            differing[text] = found
    assert differing == {}


def test_reals_are_close_to_spark_s(batch: SparkSession) -> None:
    """Java allows its functions errors of up to 2.5 units in the last place, and so does DuckDB's library."""
    table = awkward_table()
    answers = spark_answers(batch, "awkward", CLOSE)
    differing = {t: found for t in CLOSE if (found := differences(answers[t], our_answer(t, table), ulps=4))}
    assert differing == {}


def test_last_digits_are_spark_s(batch: SparkSession) -> None:
    texts = [text.strip() for text in _ON_RANDOM_VALUES.replace("\n", ";").split(";") if text.strip()]
    table = random_table()
    answers = spark_answers(batch, "random_values", texts)
    differing = {text: found for text in texts if (found := differences(answers[text], our_answer(text, table)))}
    assert differing == {}


def _differing(batch: SparkSession, seed: int, texts: Sequence[str]) -> dict[str, list[str]]:
    """What differs on drawn values. A row may fail with us only: values that we do not support are drawn as well."""
    table = drawn_table(seed)
    register(batch, f"drawn_{seed}", table)
    answers = spark_answers(batch, f"drawn_{seed}", texts)
    found = {}
    for text in texts:
        ours, theirs = our_answer(text, table), answers[text]
        values = tuple(two if one == FAILED else one for one, two in zip(ours.values, theirs.values, strict=True))
        if differing := differences(theirs, replace(ours, values=values)):
            found[text] = differing
    return found


def test_functions_of_drawn_values_are_spark_s(batch: SparkSession) -> None:
    texts = [text for topic in ("formats of numbers", "intervals", "schemas") for text in EQUAL[topic]]
    assert _differing(batch, 1, texts) == {}


@DEEP
@pytest.mark.parametrize("seed", seeds(1, times=3))
def test_all_functions_of_drawn_values_are_spark_s(batch: SparkSession, seed: int) -> None:
    assert _differing(batch, seed, [text for texts in EQUAL.values() for text in texts]) == {}


def test_where_we_cannot_answer_a_row_fails(batch: SparkSession) -> None:
    table = awkward_table()
    answers = spark_answers(batch, "awkward", LOUDER)
    for text in LOUDER:
        theirs, ours = answers[text], our_answer(text, table)
        assert (ours.type, ours.refused, theirs.refused) == (theirs.type, "", ""), text
        differing = {one for one, two in zip(ours.values, theirs.values, strict=True) if one != two}
        assert differing == {FAILED}, text


@pytest.mark.parametrize("text", REFUSED)
def test_refused_is_what_spark_would_answer(batch: SparkSession, text: str) -> None:
    assert batch.sql(f"SELECT {text} FROM awkward").schema
    refusal = our_answer(text, awkward_table()).refused
    assert refusal.startswith("[RJ105]"), refusal
    assert "Detail: " in refusal


def test_both_refuse_what_is_wrong(batch: SparkSession) -> None:
    answers = spark_answers(batch, "awkward", WRONG)
    for text in WRONG:
        assert answers[text].refused, text
        assert our_answer(text, awkward_table()).refused, text
