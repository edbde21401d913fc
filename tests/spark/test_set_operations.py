"""INTERSECT and EXCEPT [ALL] give what Spark computes from the same rows, also after a restart and a retraction."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag, view

CLAUSES = ("INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS", "MINUS ALL")
LEFT = [(1, "a"), (1, "a"), (2, None), (2, None), (2, None), (None, "c"), (4, "d")]
RIGHT = [(2, None), (2, None), (None, "c"), (None, "c"), (5, "e")]


def test_views_are_what_spark_computes(open_flow: OpenFlow, spark: SparkSession) -> None:
    flow = open_flow()
    flow.sql("CREATE CHANGELOG a (k INT, s STRING); CREATE CHANGELOG b (n BIGINT, t STRING)")
    queries = {f"v{at}": f"SELECT k, s FROM a {clause} SELECT n, t FROM b" for at, clause in enumerate(CLAUSES)}
    for name, query in queries.items():
        flow.sql(f"CREATE VIEW {name} AS {query}")
    flow.insert("a", [{"k": k, "s": s} for k, s in LEFT])
    flow.insert("b", [{"n": n, "t": t} for n, t in RIGHT])
    flow.run()
    flow = open_flow()
    removed, right = RIGHT[0], RIGHT[1:]
    flow.delete("b", [{"n": removed[0], "t": removed[1]}])
    flow.run()
    spark.createDataFrame(LEFT, "k INT, s STRING").createOrReplaceTempView("a")
    spark.createDataFrame(right, "n BIGINT, t STRING").createOrReplaceTempView("b")
    try:
        for name, query in queries.items():
            assert view(flow, name) == bag(spark.sql(query)), query
    finally:
        for name in "ab":
            spark.catalog.dropTempView(name)
