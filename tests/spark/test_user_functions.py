"""Functions of the user on Spark: workers import them by name; their values are those of Spark's own UDFs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import FunctionBlocked, FunctionFailed
from tests.features.functions import declared


def test_workers_call_functions_of_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    here = "tests.features.functions.declared"
    flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2, show_values=True, functions=[here])
    flow.sql("CREATE TABLE orders (id BIGINT, amount DOUBLE, country STRING, PRIMARY KEY (id))")
    flow.udf.register("tax", declared.tax, "DOUBLE", arguments="amount DOUBLE, country STRING")
    flow.sql(
        "CREATE FUNCTION taxes (amount DOUBLE, country STRING) RETURNS DOUBLE LANGUAGE PYTHON "
        f"OPTIONS (vectorized 'true', timeout '20 seconds') AS '{here}:tax_of_arrays'"
    )
    flow.udtf.register("words", declared.words, "word STRING, at BIGINT", arguments="text STRING")
    flow.udaf.register("wmean", declared.WeightedMean, "DOUBLE", arguments="x DOUBLE, w INT")
    query = "SELECT id, tax(amount, country) FROM orders"
    flow.sql(f"CREATE VIEW taxed AS {query}")
    flow.sql("CREATE VIEW arrays AS SELECT id, taxes(amount, country) AS t FROM orders")
    flow.sql("CREATE VIEW split AS SELECT id, word FROM orders, LATERAL words(country)")
    flow.sql("CREATE VIEW means AS SELECT country, wmean(amount, 2) AS m FROM orders GROUP BY country")
    rows = [{"id": i, "amount": None if i == 3 else i / 2, "country": f"c{i % 2} c"} for i in range(40)]
    flow.insert("orders", rows)
    flow.run()
    spark.udf.register("tax", declared.tax, "double")
    spark.createDataFrame(rows, "id BIGINT, amount DOUBLE, country STRING").createOrReplaceTempView("orders")
    theirs = spark.sql(query)
    mine = flow.table("taxed")
    assert mine.schema.names == theirs.schema.names
    assert sorted(map(tuple, mine.collect())) == sorted(map(tuple, theirs.collect()))
    assert sorted(map(tuple, flow.table("arrays").collect())) == sorted(map(tuple, theirs.collect()))
    assert flow.table("split").count() == 80

    flow.insert("orders", [{"id": 0, "amount": 1.0, "country": "XX"}])
    with pytest.raises(FunctionFailed, match=r"function `tax(es)?` failed on a row\nDetail: it raised LookupError"):
        flow.run()
    assert flow.epoch == 0, "nothing of it is committed"
    flow.delete("orders", [{"id": 0}])
    again = rj.Flow(tmp_path / "state", spark=spark, parallelism=3, functions=[here])
    again.run()
    means = {row["country"]: row["m"] for row in again.table("means").collect()}
    even, odd = [i / 2 for i in range(2, 40, 2)], [i / 2 for i in range(1, 40, 2) if i != 3]
    assert means == {"c0 c": sum(even) / len(even), "c1 c": sum(odd) / len(odd)}

    again.udf.register("slow", declared.waits, "DOUBLE", arguments="amount DOUBLE, country STRING", timeout=0.2)
    with pytest.raises(FunctionBlocked, match=r"`slow` did not return within 0.2 seconds"):
        again.sql("CREATE VIEW slowly AS SELECT id, slow(amount, country) AS s FROM orders")
