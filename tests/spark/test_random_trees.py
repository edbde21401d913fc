"""Random expression trees, against batch Spark: type and value or failure of every row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.deep import DEEP, one_seed
from tests.spark.awkward_values import awkward_table
from tests.spark.conformance import FAILED, batch_session, differences, our_answer, spark_answers
from tests.spark.random_trees import random_tree

pytestmark = pytest.mark.slow

_TREES, _DEEP_TREES, _AT_ONCE = 100, 10_000, 500


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> SparkSession:
    """A session of its own on the shared JVM, with the table of awkward values."""
    return batch_session(spark)


def _differing(batch: SparkSession, seeds: Iterable[int]) -> dict[str, list[str]]:
    """What differs, by tree. A row may fail with us only: dates beyond DuckDB's range do. Few trees may be refused."""
    texts, table = [random_tree(seed) for seed in seeds], awkward_table()
    answers = spark_answers(batch, "awkward", texts)
    found, refused = {}, []
    for text in texts:
        ours, theirs = our_answer(text, table), answers[text]
        if ours.refused.startswith("[RJ105]"):
            refused.append(text)
            continue
        values = tuple(two if one == FAILED else one for one, two in zip(ours.values, theirs.values, strict=False))
        if differing := differences(theirs, replace(ours, name=theirs.name, values=values)):
            found[text] = differing
    assert len(refused) <= len(texts) // 20, refused
    return found


def test_trees_are_spark_s(batch: SparkSession) -> None:
    assert _differing(batch, range(1, _TREES + 1)) == {}


@DEEP
@pytest.mark.parametrize("start", range(0, _DEEP_TREES, _AT_ONCE))
def test_many_trees_are_spark_s(batch: SparkSession, start: int) -> None:
    first = one_seed() + start
    assert _differing(batch, range(first, first + _AT_ONCE)) == {}
