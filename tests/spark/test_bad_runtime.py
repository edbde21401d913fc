"""The wrong Java, and the wrong Python in the workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rejoinder.errors import RuntimeMismatch
from rejoinder.exchange.session.spark_session import check_java
from rejoinder.exchange.tasks import spark_rounds
from rejoinder.ir.splits import StateSplit
from tests.deep import DEEP


def fake_java(folder: Path, says: str) -> Path:
    """A Java that says what it is, and nothing else."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "version"),
    [('openjdk version "11.0.2" 2019-01-15', "11"), ('java version "1.8.0_202"', "8"), ("no Java at all", "")],
)
def test_an_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: str) -> None:
    home = fake_java(tmp_path, says)
    fact = f"Java {version} is too old" if version else "the version of Java is unknown"
    expected = rf"{fact}\nDetail: .*{says.split()[0]}.*\nHint: install Java 17"
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(RuntimeMismatch, match=expected):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    with pytest.raises(RuntimeMismatch, match=expected):
        check_java()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeMismatch, match=r"Java is not installed\nDetail: .*\nHint: install Java 17"):
        check_java()


def test_a_flow_does_not_start_on_an_old_java(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", 'openjdk version "11.0.2"')
    code = f"import rejoinder as rj; rj.Flow({str(tmp_path / 'state')!r})"
    environment = {**os.environ, "JAVA_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "RuntimeMismatch: [RJ500] Java 11 is too old" in done.stderr
    assert not (tmp_path / "state").exists()


def test_another_python_in_a_stage(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker does that finds itself on another Python than the stage was made on."""
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    frame = spark_rounds.attach(
        spark_rounds.listed_splits(spark, [StateSplit("x")]), [lambda work, batches: iter(())], 2
    )
    monkeypatch.undo()
    with pytest.raises(
        RuntimeMismatch, match=r"the workers run Python 3\.\d+\nDetail: the driver runs 3\.99\nHint: set"
    ):
        spark_rounds.run_attached(frame, "")


def other_python() -> str | None:
    """A Python of another version on this machine, if there is one: on the path, or installed beside ours."""
    beside = sorted(Path(sys.base_prefix).parent.glob("*/bin/python3.1?"))
    for found in (*map(shutil.which, (f"python3.{minor}" for minor in range(10, 20))), *map(str, beside)):
        if found is not None:
            code = "import sys; print(*sys.version_info[:2])"
            done = subprocess.run([found, "-c", code], capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.split() != [str(part) for part in sys.version_info[:2]]:
                return found
    return None


OTHER_WORKERS = """
import sys
from pyspark.sql import SparkSession
import rejoinder as rj
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
flow = rj.Flow(sys.argv[1], spark=spark)
flow.sql("CREATE STREAM s (id BIGINT); CREATE VIEW v AS SELECT id FROM s")
flow.insert("s", [{"id": 1}])
try:
    flow.run()
except rj.RejoinderError as error:
    print(type(error).__name__, error)
"""


@DEEP
@pytest.mark.slow
@pytest.mark.skipif(other_python() is None, reason="there is one Python only")
def test_another_python_in_the_workers(tmp_path: Path) -> None:
    """As it happens to a session of the user's own: PySpark takes whatever `python3` is on the workers."""
    environment = {**os.environ, "PYSPARK_PYTHON": str(other_python()), "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", OTHER_WORKERS, str(tmp_path / "state")],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("RuntimeMismatch [RJ500] the workers run another Python than the driver"), done.stderr
    assert "Detail: " in done.stdout and "Hint: set PYSPARK_PYTHON" in done.stdout
