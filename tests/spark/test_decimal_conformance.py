"""Decimals by Spark's rule: type, and value or failure, of arithmetic on random precisions, scales and values."""

from __future__ import annotations

import itertools
import logging
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rejoinder.sql.types import spark_types
from tests.deep import DEEP
from tests.spark.conformance import compile_less, our_answer, spark_answers

pytestmark = pytest.mark.slow

_KINDS = [
    (38, 10),
    (38, 18),
    (38, 0),
    (38, 38),
    (38, 37),
    (38, 6),
    (30, 12),
    (25, 5),
    (20, 0),
    (19, 19),
    (15, 2),
    (9, 4),
]
_ROWS = 40
_PAIRS = 130
_MORE = """
case when d0 > 0 then d0 else d3 end; coalesce(d2, d3); coalesce(d0, d10, 1); d2 = d3; d0 < d4; greatest(d1, d2)
100.00 * d5 / d6; d10 * (1 - d10) / d5; d10 * d10 * d10; d0 * d1 + d6; (d0 + d1) * d10; d6 / d6 / d6; d8 / 3; 1 / d8
cast(d0 * d10 as decimal(20,2)); abs(d2) / 7; d9 * d9; d11 / d3; d2 - d2; d3 + d3; d4 - d4
"""


def _table(seed: int) -> pa.Table:
    draw = random.Random(seed)
    columns = {}
    for at, (precision, scale) in enumerate(_KINDS):
        sizes = [draw.choice([precision, precision - 1, precision // 2, 3, 1]) for _ in range(_ROWS)]
        values = [draw.randint(-(10**size) + 1, 10**size - 1) for size in sizes]
        # runs of nines and halves, on which rounding twice differs from rounding once
        values[:4] = [
            10**precision - 1,
            -(10**precision) + 1,
            5 * 10 ** (precision - 1),
            int("49" * 19) % 10**precision,
        ]
        # by text: Python's own arithmetic keeps 28 digits
        exact = [None if draw.random() < 0.1 else Decimal(f"{value}E-{scale}") for value in values]
        columns[f"d{at}"] = pa.array(exact, pa.decimal128(precision, scale))
    return pa.table(columns)


def _texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    names = [f"d{at}" for at in range(len(_KINDS))]
    pairs = [f"{a} {sign} {b}" for a, b, sign in itertools.product(names, names, "+-*/%")]
    return draw.sample(pairs, _PAIRS) + [text.strip() for text in _MORE.replace("\n", ";").split(";") if text.strip()]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=DEEP)])
def test_types_and_values_of_decimals_are_spark_s(spark: SparkSession, seed: int) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    compile_less(session)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    table = _table(seed)
    schema = ", ".join(f"`{field.name}` {spark_types.spark_name(field.type)}" for field in table.schema)
    session.createDataFrame(table, schema=schema).createOrReplaceTempView("decimals")
    texts = _texts(seed)
    answers = spark_answers(session, "decimals", texts)
    differing = {}
    for text in texts:
        theirs, ours = answers[text], our_answer(text, table)
        if (theirs.type, theirs.values, bool(theirs.refused)) != (ours.type, ours.values, bool(ours.refused)):
            rows = [at for at, (a, b) in enumerate(zip(theirs.values, ours.values, strict=False)) if a != b]
            shown = [(theirs.values[at], ours.values[at]) for at in rows[:3]]
            differing[text] = (theirs.type, ours.type, ours.refused[:80], len(rows), shown)
    assert differing == {}


def test_shares_of_sums_have_six_digits(spark: SparkSession) -> None:
    """The shapes of TPC-H q8 and q14, whose exact types have 82 digits."""
    table = _table(3).select(["d10", "d11"])
    shares = [
        "100.00 * cast(d10 * (1 - d10) as decimal(38,4)) / cast(d10 * (1 - d10) as decimal(38,4))",
        "cast(d10 * d11 as decimal(38,4)) / cast(d10 * (1 - d11) as decimal(38,4))",
    ]
    spark.createDataFrame(table, schema="d10 decimal(15,2), d11 decimal(9,4)").createOrReplaceTempView("shares")
    answers = spark_answers(spark, "shares", shares)
    for text in shares:
        theirs, ours = answers[text], our_answer(text, table)
        assert (theirs.type, theirs.values) == (ours.type, ours.values) and ours.type == "decimal(38,6)", text
