"""In-memory sources: `flow.insert` and `flow.delete`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import rejoinder as rj
from rejoinder.cli.main import app
from rejoinder.errors import InputError, InvalidSql, NullKey, Unsupported
from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag, view


def test_insert_and_delete(flow: rj.Flow) -> None:
    flow.sql("CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id)); CREATE CHANGELOG c (id BIGINT, n INT)")
    flow.sql("CREATE VIEW v AS SELECT t.id, name, n FROM t JOIN c ON t.id = c.id")
    flow.insert("t", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, {"id": 2}])
    flow.insert("C", pa.table({"n": pa.array([5, 6], pa.int32()), "id": [1, 2]}))
    flow.run()
    assert view(flow, "v") == bag([(1, "b", 5), (2, None, 6)])
    flow.delete("t", [{"id": 2}])
    flow.insert("t", [{"id": 1, "name": "first"}])
    flow.insert("t", [{"id": 1, "name": "last"}])
    flow.delete("c", [{"id": 2, "n": 6}])
    flow.insert("c", [{"id": 2, "n": 6}] * 2)
    flow.run()
    assert view(flow, "v") == bag([(1, "last", 5)])


def test_rows_wait_for_who_reads_them(open_flow: OpenFlow) -> None:
    flow = open_flow()
    flow.sql("CREATE STREAM s (id BIGINT)")
    flow.insert("s", [{"id": 1}])
    flow = open_flow()
    flow.insert("s", [{"id": 2}])
    assert [progress.rows_in for progress in flow.run()] == [{"s": 2}], "read and kept, though no view needs them yet"
    flow.insert("s", [{"id": 3}])
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    flow.run()
    assert view(flow, "v") == bag([(1,), (2,), (3,)])


def test_what_no_epoch_could_take_is_refused_at_once(flow: rj.Flow) -> None:
    flow.sql("CREATE TABLE t (id BIGINT, number INT, PRIMARY KEY (id)); CREATE STREAM s (id BIGINT)")
    flow.sql("CREATE VIEW v AS SELECT id, number FROM t; CREATE VIEW w AS SELECT id FROM s")
    with pytest.raises(InputError, match=r"`t` has no column `numer`[\s\S]*did you mean `number`"):
        flow.insert("t", [{"id": 1, "numer": 2}])
    with pytest.raises(InputError, match="`t` has no column `m`"):
        flow.insert("t", pa.table({"id": [1], "m": [1]}))
    for rows in (
        [{"id": 1, "number": 2**31}],
        [{"id": "x"}],
        pa.table({"id": ["x"]}),
        pa.table({"number": [1.5], "id": [1]}),
    ):
        with pytest.raises(InputError, match="does not fit"):
            flow.insert("t", rows)
    for rows in ([{"number": 1}], pa.table({"number": [1]})):
        with pytest.raises(NullKey, match="NULL in the primary key of `t`"):
            flow.insert("t", rows)
    with pytest.raises(NullKey):
        flow.delete("t", [{"number": 1}])
    with pytest.raises(InputError, match="`s` is append-only"):
        flow.delete("s", [{"id": 1}])
    with pytest.raises(InvalidSql, match="`v` is not an in-memory source"):
        flow.insert("v", [{"id": 1}])
    assert flow.run() == []
    flow.insert("t", [{"id": 1, "number": 2}])
    flow.run()
    assert view(flow, "v") == bag([(1, 2)])


def test_a_source_that_is_created_again_is_empty(open_flow: OpenFlow) -> None:
    flow = open_flow()
    for turn in range(2):
        flow.sql("CREATE CHANGELOG c (id BIGINT); CREATE VIEW v AS SELECT id FROM c")
        flow.insert("c", [{"id": turn}])
        flow.run()
        flow.insert("c", [{"id": 10 + turn}])
        assert view(flow, "v") == bag([(turn,)])
        flow.sql("DROP VIEW v; DROP CHANGELOG c")
        flow = open_flow()


def test_state_folder_with_an_odd_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20[c]{d}#?é"
    for turn in range(2):
        flow = rj.Flow(folder, spark=spark, parallelism=2)
        flow.sql("CREATE STREAM IF NOT EXISTS s (id BIGINT); CREATE VIEW IF NOT EXISTS v AS SELECT id FROM s")
        flow.insert("s", [{"id": turn}])
        flow.run()
        assert bag(flow.table("v")) == bag([(i,) for i in range(turn + 1)])
    assert [path.name for path in tmp_path.iterdir()] == [folder.name], "nothing is written beside it"


def test_state_in_memory_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Unsupported, match="cannot be in memory"):
        rj.Flow("memory://somewhere", spark=spark)


def test_rows_of_a_dropped_source_stay_behind(open_flow: OpenFlow) -> None:
    """Whether they were read or wait, and though the command line, which knows no inbox, defines the new source."""
    text = "CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t"
    flow = open_flow()
    flow.sql(text)
    flow.insert("t", [{"a": 1}])
    flow.run()
    flow.insert("t", [{"a": 2}])
    place = flow.engine.store.path
    assert CliRunner().invoke(app, ["sql", place, f"DROP STREAM t CASCADE; {text}"]).exit_code == 0
    again = open_flow()
    again.insert("t", [{"a": 3}])
    again.run()
    assert [row.a for row in again.table("v").collect()] == [3]
