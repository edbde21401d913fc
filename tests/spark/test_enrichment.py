"""ENRICH on Spark: workers import the function and call it; answers are stored over restarts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import FunctionFailed, UnknownName
from tests.spark.answering import asked_at


def test_answers_are_computed_in_workers_and_persisted(spark: SparkSession, tmp_path: Path) -> None:
    flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2, show_values=True)
    flow.sql("CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id))")
    people = flow.relation("people")
    with pytest.raises(UnknownName, match=r"`tests\.spark\.answering:asked` *"):
        flow.view("loud", people.enrich("tests.spark.answering:asked", columns={"at": "BIGINT"}))
    flow.view("loud", people.enrich(asked_at, columns={"at": "BIGINT", "loud": "STRING"}, concurrency=4, timeout=30))
    flow.insert("people", [{"id": i, "name": f"n{i}"} for i in range(20)])
    flow.run()
    first = {row["id"]: (row["at"], row["loud"]) for row in flow.table("loud").collect()}
    assert {i: loud for i, (_, loud) in first.items()} == {i: f"N{i}" for i in range(20)}

    flow.insert("people", [{"id": 0, "name": "nobody"}])
    with pytest.raises(
        FunctionFailed, match=r"it raised LookupError\nValues: .*'name': 'nobody'\}: there is nobody of"
    ):
        flow.run()
    assert flow.epoch == 0, "nothing of it is committed"
    flow.insert("people", [{"id": 0, "name": "somebody"}, {"id": 1, "name": "n1"}])
    flow.delete("people", [{"id": 2}])

    again = rj.Flow(tmp_path / "state", spark=spark, parallelism=3)
    again.run()
    told = again.sql("SELECT STREAM * FROM loud").collect()
    changes = {(row["id"], row["loud"]): (row["at"], row["_diff"]) for row in told if row["_epoch"] > 0}
    assert changes.keys() == {(0, "N0"), (0, "SOMEBODY"), (2, "N2")}
    assert changes[0, "N0"] == (first[0][0], -1) and changes[2, "N2"] == (first[2][0], -1), "as it was answered then"
