"""Positions of sources are in the manifest: which files are read survives a restart, and is named if it is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.engine.version import named_files
from rejoinder.errors import Corrupt
from rejoinder.ir.streams import Generation, StreamId
from rejoinder.state.positions import Position, Positions, as_in_log
from rejoinder.store.commits.file_log import FileLog, FileRead
from rejoinder.store.commits.unnamed_files import find_garbage
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver

FILES = 150


def opened(folder: Path) -> Driver:
    driver = Driver(store=folder / "state")
    driver.sql(
        f"CREATE STREAM IF NOT EXISTS t (a BIGINT) USING csv OPTIONS (path '{folder}/in', maxFilesPerTrigger '7');"
        "CREATE VIEW IF NOT EXISTS v AS SELECT a FROM t"
    )
    return driver


def test_a_file_is_read_once_across_restarts(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        (tmp_path / f"in/{number:03}.csv").write_text(f"{number}\n")
    for _ in range(0, FILES, 7):
        opened(tmp_path).step()
    driver = opened(tmp_path)
    driver.step()
    engine = driver._engine
    read = engine.version.positions.files_read(engine.store, engine.version.attached["t"])
    assert len(read) == FILES
    assert sorted(row["a"] for row in driver.table("v")) == list(range(FILES))
    assert sorted(Path(each.path).stem for each in read) == [f"{number:03}" for number in range(FILES)]
    manifest = engine.version.manifest
    assert manifest is not None and len(str(manifest.extra["positions"])) < 12_000
    left = [each.name for each in find_garbage(engine.store, named_files, -1)]
    assert not [name for name in left if name.startswith("positions/")], "chunks that were merged are collected"


def test_a_damaged_log_of_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        (tmp_path / f"in/{number:03}.csv").write_text(f"{number}\n")
    driver = opened(tmp_path)
    for _ in range(20):
        driver.step()
    chunk = next((tmp_path / "state/positions").rglob("*.log"))
    data = bytearray(chunk.read_bytes())
    data[len(data) // 3] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(Corrupt, match="log of files"):
        opened(tmp_path).step()


def test_positions_go_with_their_source(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    files, topic = StreamId("aa"), StreamId("bb", 1)
    read = [FileRead("file:///a%20b/c%25.csv", 5), FileRead("s3a://x/y%20z", 6)]
    positions = Positions().with_files(store, files, 3, read)
    positions = positions.with_position(topic, Position('{"t":{"0":7}}', {"0": "began"}))
    assert positions.of(topic) == Position('{"t":{"0":7}}', {"0": "began"}, FileLog())
    assert [file.path for file in positions.files_read(store, "aa")] == ["file:/a b/c%.csv", "s3a://x/y z"]
    assert list(positions.restricted_to({"bb"}).streams) == [topic]


def test_positions_are_stored_as_they_are(tmp_path: Path) -> None:
    positions = Positions().with_files(open_store(str(tmp_path)), StreamId("aa"), 3, [FileRead("file:///a.csv", 5)])
    positions = positions.with_generation(
        Generation(2, "2-ab", (StreamId("bb", 1), StreamId("aa")), ("v1", "{}")),
        {StreamId("bb", 1): {"0": "began"}},
        {StreamId("aa"): '{"logOffset":1}'},
    )
    assert positions.of(StreamId("aa")).offset == '{"logOffset":1}' and positions.of(StreamId("bb", 1)).offset == "-"
    assert Positions.from_json(positions.to_json()) == positions
    assert Positions.from_json(Positions().to_json()) == Positions()


@pytest.mark.parametrize("name", ["1.json", "a b%é+=.json", 'day=1/x(1)#"~&;.csv'])
def test_a_local_path_is_named_as_in_the_log_of_spark(name: str) -> None:
    logged = as_in_log(f"/in/{name}")
    assert logged.isprintable() and " " not in logged and logged.startswith("file:///in/")
    positions = Positions({StreamId("aa"): Position(files=FileLog((FileRead(logged, 1),)))})
    (read,) = positions.files_read(open_store("memory://logged"), "aa")
    assert read.path == f"file:/in/{name}"
