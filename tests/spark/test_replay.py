"""Spark's checkpoint and the state disagree: replays change nothing, and what does not belong together is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rejoinder as rj
from rejoinder.errors import Corrupt, Fenced
from rejoinder.exchange.streaming.checkpoint import Checkpoint
from rejoinder.exchange.streaming.checkpoint_files import HadoopFiles
from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag, summed, view


def fill(flow: rj.Flow, epochs: int) -> None:
    """A join, and some epochs of it."""
    flow.sql("CREATE CHANGELOG a (id BIGINT, x INT); CREATE TABLE b (id BIGINT, y INT, PRIMARY KEY (id))")
    flow.sql("CREATE VIEW v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    for number in range(epochs):
        epoch(flow, number)


def epoch(flow: rj.Flow, number: int) -> None:
    flow.insert("a", [{"id": number % 2, "x": number}])
    flow.insert("b", [{"id": number % 2, "y": number}])
    flow.run()


def generation(flow: rj.Flow) -> Path:
    """The folder of Spark's present checkpoint."""
    spark = flow.engine.version.positions.spark
    assert spark is not None
    return Path(flow._runner.checkpoint.folder, spark.folder)


@pytest.fixture(params=["this driver", "a new driver"])
def reuse(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark replays from its own files, or a new driver takes them over."""
    if request.param == "this driver":
        monkeypatch.setattr(Checkpoint, "_is_own", lambda self, folder: True)


def everything(flow: rj.Flow) -> tuple[object, ...]:
    """All that a reader can see, and how far the state is."""
    return flow.epoch, view(flow, "v"), bag(flow.sql("SELECT STREAM * FROM v"))


@pytest.mark.usefixtures("reuse")
def test_a_replay_without_the_last_commit_changes_nothing(open_flow: OpenFlow) -> None:
    flow = open_flow()
    fill(flow, 3)
    before = everything(flow)
    (generation(flow) / "commits" / "2").unlink()
    assert (generation(flow) / "offsets" / "2").exists()
    flow = open_flow()
    assert flow.run() == [] and everything(flow) == before
    epoch(flow, 3)
    assert flow.epoch == 3 and view(flow, "v").total() == 4
    assert summed(flow.sql("SELECT STREAM * FROM v").collect()) == view(flow, "v")


@pytest.mark.usefixtures("reuse")
def test_an_epoch_that_was_planned_and_not_committed(open_flow: OpenFlow, tmp_path: Path) -> None:
    """The offsets of an epoch are there, its commit and its manifest are not: its rows come once."""
    flow = open_flow()
    fill(flow, 2)
    saved = tmp_path / "saved"
    shutil.copytree(flow.engine.store.path, saved)
    epoch(flow, 2)
    expected = view(flow, "v")
    planned = generation(flow)
    manifests = Path(flow.engine.store.path, "manifests")
    for manifest in manifests.iterdir():
        if not (saved / "manifests" / manifest.name).exists():
            manifest.unlink()
    shutil.copy(saved / "manifests" / "latest", manifests / "latest")
    assert (planned / "offsets" / "2").exists()
    (planned / "commits" / "2").unlink()
    flow = open_flow()
    assert flow.epoch == 1
    flow.run()
    assert flow.epoch == 2 and view(flow, "v") == expected


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 4  # as 7 (0x37) becomes 3 (0x33)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["gone", "empty", "flipped", "cut"])
def test_a_checkpoint_is_rebuilt_from_the_manifest(open_flow: OpenFlow, tmp_path: Path, damage: str) -> None:
    """Files, rows of `insert` and a rate: nothing is read twice, and nothing is left out."""
    (tmp_path / "in").mkdir()

    def define(flow: rj.Flow) -> rj.Flow:
        flow.stream("r", flow.spark.readStream.format("rate").option("rowsPerSecond", 1).load())
        return flow

    def arrive(*numbers: int) -> None:
        for number in numbers:
            (tmp_path / f"in/a b%{number}.csv").write_text(f"{number}\n")

    flow = define(open_flow())
    flow.sql(f"CREATE STREAM t (a BIGINT) USING csv OPTIONS (path '{tmp_path}/in'); CREATE STREAM m (a BIGINT)")
    flow.sql(
        "CREATE VIEW v AS SELECT a FROM t; CREATE VIEW mv AS SELECT a FROM m; CREATE VIEW n AS SELECT value FROM r"
    )
    for turn in range(4):
        arrive(2 * turn, 2 * turn + 1)
        flow.insert("m", [{"a": turn}])
        flow.run()
    last = generation(flow)
    files = [path for path in last.rglob("*") if path.is_file()]
    assert files
    for path in files:
        match damage:
            case "empty":
                path.write_bytes(b"")
            case "cut":
                path.write_bytes(path.read_bytes()[:20])
            case "flipped":
                flip(path)
    if damage == "gone":
        shutil.rmtree(last.parent)
    flow = define(open_flow())
    arrive(8)
    flow.run()
    assert view(flow, "v") == bag([(number,) for number in range(9)])
    assert view(flow, "mv") == bag([(number,) for number in range(4)])
    values = sorted(flow.arrow("n").column("value").to_pylist())
    assert values == list(range(len(values))), "a rate goes on from where it began"


def test_state_of_a_frame_that_is_gone_is_named(open_flow: OpenFlow, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def define(flow: rj.Flow) -> rj.Flow:
        lines = flow.spark.readStream.text(str(tmp_path / "in")).dropDuplicates(["value"])
        flow.stream("lines", lines.repartition(1))
        return flow

    flow = define(open_flow())
    flow.sql("CREATE VIEW v AS SELECT value FROM lines")
    (tmp_path / "in/1").write_text("a\nb\na\n")
    flow.run()
    flow = define(open_flow())
    (tmp_path / "in/2").write_text("b\nc\n")
    flow.run()
    assert view(flow, "v") == bag([("a",), ("b",), ("c",)]), "the state goes along"
    state, kept = generation(flow) / "state", tmp_path / "kept"
    shutil.copytree(state, kept)
    for path in state.rglob("*.delta"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (tmp_path / "in/3").write_text("c\nd\n")
    flow = define(open_flow())
    with pytest.raises(Corrupt, match=r"state that Spark keeps for a DataFrame[\s\S]*Hint: restore"):
        flow.run()
    state = generation(flow) / "state"
    shutil.rmtree(state)
    flow = define(open_flow())
    with pytest.raises(Corrupt, match=r"state that Spark keeps for a DataFrame[\s\S]*Hint: restore"):
        flow.run()
    assert view(flow, "v") == bag([("a",), ("b",), ("c",)])
    shutil.copytree(kept, state)
    flow.run()
    assert view(flow, "v") == bag([("a",), ("b",), ("c",), ("d",)])


def test_a_checkpoint_that_hadoop_reaches(open_flow: OpenFlow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an object store: generations are written and read through the JVM, and sources may come later."""
    monkeypatch.setattr(Checkpoint, "_files", property(lambda self: HadoopFiles(self._session)))
    flow = open_flow()
    fill(flow, 2)
    flow.sql("CREATE STREAM c (id BIGINT); CREATE VIEW w AS SELECT id FROM c")
    flow.insert("c", [{"id": 7}])
    epoch(flow, 2)
    assert view(flow, "w") == bag([(7,)]) and view(flow, "v").total() == 3
    shutil.rmtree(generation(flow))
    flow = open_flow()
    epoch(flow, 3)
    assert view(flow, "w") == bag([(7,)]) and view(flow, "v").total() == 4


def test_a_second_flow_takes_over(open_flow: OpenFlow) -> None:
    first = open_flow()
    fill(first, 2)
    second = open_flow()
    epoch(second, 2)
    first.insert("a", [{"id": 1, "x": 9}])
    with pytest.raises(Fenced, match=r"another driver has[\s\S]*Hint: run one driver per state"):
        first.run()
    with pytest.raises(Fenced):
        first.sql("CREATE VIEW w AS SELECT id FROM a")
    second.run()
    assert second.epoch == 3 and summed(second.sql("SELECT STREAM * FROM v").collect()) == view(second, "v")
    assert view(first, "v") == view(second, "v"), "it can still read"


def test_a_running_flow_that_was_taken_over_stops(open_flow: OpenFlow) -> None:
    first = open_flow()
    fill(first, 1)
    first.start()
    second = open_flow()
    second.start()
    second.insert("a", [{"id": 0, "x": 5}])
    with pytest.raises(Fenced):
        first.wait(60)
    assert not first.is_running
    second.stop()
    second.run()
    assert view(second, "v") == bag([(0, 0, 0), (0, 5, 0)])


def test_only_two_generations_are_kept(open_flow: OpenFlow) -> None:
    flow = open_flow()
    fill(flow, 1)
    for _ in range(3):
        flow = open_flow()
        flow.run()
    kept = sorted(path.name for path in generation(flow).parent.iterdir())
    assert len(kept) == 2 and kept[-1] == generation(flow).name


def test_files_are_read_once_across_compactions_of_sparks_log(open_flow: OpenFlow, tmp_path: Path) -> None:
    """Every tenth entry of Spark's log holds all before it: the manifest takes over what is new in it."""
    (tmp_path / "in").mkdir()
    for number in range(24):
        (tmp_path / f"in/{number:02}.csv").write_text(f"{number}\n")
    flow = open_flow()
    flow.sql(
        f"CREATE STREAM t (a BIGINT) USING csv OPTIONS (path '{tmp_path}/in', maxFilesPerTrigger '1');"
        "CREATE VIEW v AS SELECT a FROM t"
    )
    flow.run()
    assert flow.epoch == 23 and list(generation(flow).glob("sources/0/*.compact"))
    engine = flow.engine
    read = engine.version.positions.files_read(engine.store, engine.version.attached["t"])
    assert sorted(Path(each.path).name for each in read) == [f"{number:02}.csv" for number in range(24)]
    shutil.rmtree(generation(flow))
    (tmp_path / "in/24.csv").write_text("24\n")
    flow = open_flow()
    flow.run()
    assert flow.epoch == 24 and view(flow, "v") == bag([(number,) for number in range(25)])
