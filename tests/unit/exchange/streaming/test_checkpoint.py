"""Generations of Spark's checkpoint: written from positions, whatever is left of the generation before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rejoinder.errors import Corrupt, Unsupported
from rejoinder.exchange.streaming.checkpoint import TICKS, Checkpoint
from rejoinder.exchange.streaming.checkpoint_files import LocalFiles
from rejoinder.exchange.streaming.checkpoint_log import StreamRead, read_epoch, write_checkpoint
from rejoinder.ir.streams import Generation, StreamId

HEADER = ["v1", '{"batchWatermarkMs":5,"batchTimestampMs":7}']


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def entry(path: str, batch: int) -> str:
    return json.dumps({"path": path, "timestamp": batch, "batchId": batch}, separators=(",", ":"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@dataclass(frozen=True)
class Position:
    """The position of a stream without a log of files."""

    offset: str
    start: Mapping[str, str] = field(default_factory=dict)
    has_files: bool = False


class Ledger:
    """Positions without an engine."""

    def __init__(self, epoch: int = -1) -> None:
        self.streams: dict[StreamId, Position] = {}
        self.spark: Generation | None = None
        self.attached: dict[str, str] = {}
        self.epoch = epoch
        self.lines: dict[StreamId, list[bytes]] = {}
        self.commits: list[str] = []

    @property
    def version(self) -> Ledger:
        return self

    @property
    def positions(self) -> Ledger:
        return self

    def begin_generation(
        self,
        generation: Generation,
        starts: Mapping[StreamId, Mapping[str, str]],
        offsets: Mapping[StreamId, str],
        *,
        commit: bool,
    ) -> None:
        self.streams |= {stream: Position("-", start) for stream, start in starts.items()}
        known = [(stream, offset) for stream, offset in offsets.items() if stream in self.streams]
        self.streams |= {stream: replace(self.streams[stream], offset=offset) for stream, offset in known}
        self.spark = generation
        self.commits += [generation.folder] if commit else []

    def file_lines(self, stream: StreamId) -> tuple[list[bytes], int]:
        return self.lines[stream], 1


A, B, C, D, NEW = (StreamId(name) for name in ("a", "b", "c", "d", "new"))


@pytest.fixture
def ledger() -> Ledger:
    """A stream of files, a topic, and one that keeps where it began; epoch 7 is committed."""
    ledger = Ledger(7)
    ledger.lines[A] = [entry(f"file:///in/{number}", 0).encode() for number in range(3)]
    ledger.spark = Generation(4, "4-lost", (A, B, C))
    ledger.streams = {
        A: Position('{"logOffset":3}', has_files=True),
        B: Position('{"t":{"0":17}}'),
        C: Position("9", {"0": "v1\nbegan"}),
    }
    return ledger


def test_a_checkpoint_is_written_from_positions(ledger: Ledger, tmp_path: Path) -> None:
    new = Path(Checkpoint(str(tmp_path)).generation(ledger, [D, C, A, B, A]))
    assert names(new / "offsets") == {"6", "7"} and names(new / "commits") == {"7"}
    offsets = ["-", "9", '{"logOffset":1}', '{"t":{"0":17}}', '{"logOffset":1}']
    assert (new / "offsets/7").read_text().split("\n")[2:] == offsets
    assert (new / "sources/1/0").read_text() == "v1\nbegan"
    assert (new / "sources/2/0").read_text().split("\n") == ["v1", entry("file:///in/0", 0), entry("file:///in/1", 0)]
    assert json.loads((new / "sources/2/1").read_text().split("\n")[1]) == {
        "path": "file:///in/2",
        "timestamp": 0,
        "batchId": 1,
    }
    assert not (new / "sources/0").exists()
    assert ledger.streams[A].offset == '{"logOffset":1}', "the next epoch is read from there"


def test_what_an_epoch_read(ledger: Ledger, tmp_path: Path) -> None:
    new = Path(Checkpoint(str(tmp_path)).generation(ledger, [A, B, C]))
    for number in (2, 3):
        write(new / f"sources/0/{number}", "\n".join(["v1", entry(f"file:///in/{number + 1}", number)]))
    offsets = ['{"logOffset":3}', '{"t":{"0":20}}', "11"]
    write(new / "offsets/8", "\n".join([*HEADER, *offsets]))
    header, read = read_epoch(LocalFiles(), str(new), [A, B, C], 8, ledger.streams)
    assert header == HEADER
    assert read == [
        StreamRead(A, offsets[0], [("file:///in/3", 2), ("file:///in/4", 3)]),
        StreamRead(B, offsets[1]),
        StreamRead(C, offsets[2], start={"0": "v1\nbegan"}),
    ]


def test_a_compacted_entry_gives_its_own_files(tmp_path: Path) -> None:
    write(tmp_path / "offsets/9", "\n".join([*HEADER, '{"logOffset":9}']))
    lines = [entry(f"file:///in/{number}", number) for number in range(10)]
    write(tmp_path / "sources/0/9.compact", "\n".join(["v1", *lines, entry("file:///in/10", 9)]))
    _, read = read_epoch(LocalFiles(), str(tmp_path), [A], 9, {A: Position('{"logOffset":8}')})
    assert read[0].files == [("file:///in/9", 9), ("file:///in/10", 9)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("offsets/9", ""),
        ("offsets/9", "v1\n{}\n{"),
        ("offsets/9", 'v1\n{}\n{"logOffset":"x"}'),
        ("offsets/9", "v1\n{}"),
        ("sources/0/9", ""),
        ("sources/0/9", 'v1\n{"pxth":'),
        ("sources/0/9", 'v1\n{"pxth":1}'),
        ("sources/0/9", 'w1\n{"path":"x","timestamp":1,"batchId":9}'),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / "offsets/9", "\n".join([*HEADER, '{"logOffset":9}']))
    write(tmp_path / "sources/0/9", "\n".join(["v1", entry("file:///in/9", 9)]))
    write(tmp_path / name, text)
    with pytest.raises(Corrupt, match=r"a file of Spark's checkpoint is damaged[\s\S]*Hint: run again"):
        read_epoch(LocalFiles(), str(tmp_path), [A], 9, {A: Position('{"logOffset":8}')})


def test_before_the_first_epoch(tmp_path: Path) -> None:
    """Files that were planned are planned anew; where a source began stays where it was."""
    ledger = Ledger()
    first = Path(Checkpoint(str(tmp_path)).generation(ledger, [A, B, TICKS]))
    write(first / "sources/0/0", "\n".join(["v1", entry("file:///in/0", 0)]))
    write(first / "sources/1/0", "v1\nbegan")
    write(first / "sources/2/0", "\n".join(["v1", entry("file:///ticks/0", 0)]))
    second = Path(Checkpoint(str(tmp_path)).generation(ledger, [B, A, TICKS]))
    assert names(second) == {"sources"} and names(second / "sources") == {"0"}
    assert (second / "sources/0/0").read_text() == "v1\nbegan"


def test_a_stream_of_files_that_read_none(tmp_path: Path) -> None:
    known = {A: Position('{"logOffset":2}')}
    assert write_checkpoint(LocalFiles(), str(tmp_path / "x"), [A], 3, known, lambda _: ([], 0)) == {A: "-"}


def stateful(ledger: Ledger, tmp_path: Path) -> Path:
    assert ledger.spark is not None
    ledger.spark = replace(ledger.spark, header=tuple(HEADER))
    old = tmp_path / "4-lost"
    write(old / "state/0/0/1.delta", "x")
    write(old / "commits/7", 'v1\n{"nextBatchWatermarkMs":9}')
    return old


def test_state_of_a_frame_moves_only_with_its_position(ledger: Ledger, tmp_path: Path) -> None:
    old = stateful(ledger, tmp_path)
    new = Path(Checkpoint(str(tmp_path)).generation(ledger, [A, B, C, D]))
    assert (new / "state/0/0/1.delta").read_text() == "x"
    assert (new / "offsets/7").read_text().split("\n")[:2] == HEADER
    assert (new / "commits/7").read_text() == (old / "commits/7").read_text()
    with pytest.raises(Unsupported, match="state of its own"):
        Checkpoint(str(tmp_path)).generation(ledger, [B, C])


@pytest.mark.parametrize("text", ["v1\n{", 'v1\n{"nextBatchWatermarkMs":"x"}', "v1", "x1\n{}", ""])
def test_lost_state_of_a_frame_is_refused(ledger: Ledger, tmp_path: Path, text: str) -> None:
    old = stateful(ledger, tmp_path)
    write(old / "commits/7", text)
    with pytest.raises(Corrupt, match=r"state that Spark keeps for a DataFrame[\s\S]*commits/7"):
        Checkpoint(str(tmp_path)).generation(ledger, [A, B, C])
    (old / "commits/7").unlink()
    (old / "state").rename(old / "elsewhere")
    with pytest.raises(Corrupt, match=r"state that Spark keeps for a DataFrame[\s\S]*does not exist"):
        Checkpoint(str(tmp_path)).generation(ledger, [A, B, C])


def test_ticks_come_and_go_beside_the_state_of_a_frame(ledger: Ledger, tmp_path: Path) -> None:
    stateful(ledger, tmp_path)
    for streams in ([A, B, C, TICKS], [A, B, C], [A, B, C, D, TICKS]):
        new = Path(Checkpoint(str(tmp_path)).generation(ledger, streams))
        assert (new / "state/0/0/1.delta").exists()


def test_every_query_has_a_generation_of_its_own(tmp_path: Path) -> None:
    ledger, driver = Ledger(), Checkpoint(f"file://{tmp_path}")
    made = [driver.generation(ledger, [A], is_short=is_short) for is_short in (False, True)]
    made.append(Checkpoint(str(tmp_path)).generation(ledger, [A]))
    made.append(driver.generation(ledger, [A]))
    assert len(set(made)) == 4
    assert ledger.spark == Generation(3, Path(made[-1]).name, (A,))


def test_a_short_query_of_the_same_driver_takes_no_commit(ledger: Ledger, tmp_path: Path) -> None:
    """The next epoch names its generation. A new driver, or a stream that was never read, is committed at once."""
    driver = Checkpoint(str(tmp_path))
    first = driver.generation(ledger, [A, B], is_short=True)
    second = driver.generation(ledger, [A, B], is_short=True)
    assert ledger.spark is not None
    assert ledger.commits == [Path(first).name] and ledger.spark.folder == Path(second).name
    driver.generation(ledger, [A, B, NEW], is_short=True)
    driver.generation(ledger, [A, B, NEW], is_short=True)
    driver.generation(ledger, [A, B])
    driver.abandon()
    driver.generation(ledger, [A, B], is_short=True)
    assert len(ledger.commits) == 5


def test_two_generations_are_kept(ledger: Ledger, tmp_path: Path) -> None:
    last = [Checkpoint(str(tmp_path)).generation(ledger, [A]) for _ in range(4)][-1]
    kept = sorted(names(tmp_path))
    assert [name.partition("-")[0] for name in kept] == ["7", "8"] and kept[-1] == Path(last).name
