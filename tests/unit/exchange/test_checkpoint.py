"""Generations of Spark's checkpoint: what a driver takes over from the last committed epoch, and what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import Corrupt, Unsupported
from rejoinder.exchange.checkpoint import TICKS, Checkpoint, take_over

HEADER = 'v1\n{"batchWatermarkMs":5,"batchTimestampMs":7}'


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def log(folder: Path, *names: str) -> None:
    """A log of files with these entries, and their checksums."""
    for name in names:
        write(folder / name, 'v1\n{"path":"file:///in/x","timestamp":1,"batchId":0}')
        write(folder / f".{name}.crc", "crc")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A generation with two file sources and one that keeps where it began; epoch 7 is committed, 8 is planned."""
    folder = tmp_path / "old"
    for epoch in (6, 7, 8):
        offsets = [f'{{"logOffset":{epoch - 4}}}', f'{{"logOffset":{epoch}}}', '{"0":17}']
        write(folder / "offsets" / str(epoch), "\n".join([HEADER, *offsets]))
    write(folder / "commits" / "7", 'v1\n{"nextBatchWatermarkMs":9}')
    write(folder / "metadata", '{"id":"old"}')
    log(folder / "sources" / "0", "0", "1", "2", "3", "4")
    log(folder / "sources" / "1", "0", "1", "2", "3", "4", "5", "6", "7", "8")
    write(folder / "sources" / "2" / "0", "began here")
    return folder


def taken(old: Path, before: str, after: str, epoch: int = 7) -> Path:
    new = old.with_name("new")
    take_over(str(old), list(before), str(new), list(after), epoch)
    return new


def test_what_is_committed_is_taken_over(old: Path) -> None:
    new = taken(old, "abc", "abc")
    assert names(new / "offsets") == {"6", "7"} and names(new / "commits") == {"7"}
    assert (new / "offsets" / "7").read_text() == (old / "offsets" / "7").read_text()
    assert (new / "commits" / "7").read_text() == (old / "commits" / "7").read_text()
    assert names(new / "sources" / "0") == {"0", "1", "2", "3"}
    assert names(new / "sources" / "1") == {"0", "1", "2", "3", "4", "5", "6", "7"}
    assert names(new / "sources" / "2") == {"0"}
    assert (new / "sources" / "0" / ".3.crc").exists() and not (new / "sources" / "0" / ".4.crc").exists()
    assert (new / "metadata").read_text() != (old / "metadata").read_text(), "another query for Spark"


def test_sources_take_what_is_theirs_to_new_positions(old: Path) -> None:
    new = taken(old, "abc", "dcab")
    lines = (new / "offsets" / "7").read_text().split("\n")
    assert lines == [*HEADER.split("\n"), "-", '{"0":17}', '{"logOffset":3}', '{"logOffset":7}']
    assert [names(new / "sources" / str(at)) for at in (1, 2)] == [{"0"}, {"0", "1", "2", "3"}]
    assert not (new / "sources" / "0").exists()


def test_a_source_that_stands_twice_in_the_plan(old: Path) -> None:
    (old / "sources" / "2").rename(old / "sources" / "1c")
    (old / "sources" / "1").rename(old / "sources" / "2")
    (old / "sources" / "1c").rename(old / "sources" / "1")
    offsets = ['{"logOffset":3}', '{"0":17}', '{"logOffset":3}', '{"logOffset":7}']
    write(old / "offsets" / "7", "\n".join([HEADER, *offsets]))
    new = taken(old, "acab", "baca")
    assert (new / "offsets" / "7").read_text().split("\n")[2:] == [offsets[3], offsets[0], offsets[1], offsets[0]]
    assert [len(names(new / "sources" / str(at))) for at in (0, 1, 2)] == [8, 4, 1]


def test_without_a_commit_of_spark_s_own(old: Path) -> None:
    (old / "commits" / "7").unlink()
    assert names(taken(old, "abc", "abc") / "commits") == {"7"}


def test_a_log_is_cut_at_a_compaction_only_if_the_rest_is_whole(old: Path) -> None:
    log(old / "sources" / "1", "9.compact", "10", "11")
    write(old / "offsets" / "11", "\n".join([HEADER, "-", '{"logOffset":10}', "-"]))
    for gone in ("0", "1", "2", "3", "4", "5", "6", "7", "8"):
        (old / "sources" / "1" / gone).unlink()
    assert names(taken(old, "abc", "abc", 11) / "sources" / "1") == {"9.compact", "10"}


def test_a_log_whose_start_is_only_in_a_later_compaction_is_kept(old: Path) -> None:
    log(old / "sources" / "1", "9.compact")
    for gone in ("0", "1", "2"):
        (old / "sources" / "1" / gone).unlink()
    assert "9.compact" in names(taken(old, "abc", "abc") / "sources" / "1")


def test_before_the_first_epoch(old: Path) -> None:
    """Files that were planned are planned anew; where a source began stays where it was."""
    new = taken(old, "abc", "cab", -1)
    assert names(new) == {"sources"}
    assert [names(new / "sources" / str(at)) for at in (0, 1, 2)] == [{"0"}, set(), set()]


def test_a_lost_checkpoint(old: Path) -> None:
    with pytest.raises(Corrupt, match=r"does not know epoch 5[\s\S]*offsets/5[\s\S]*Hint: restore"):
        taken(old, "abc", "abc", 5)


def test_state_of_a_frame_moves_only_with_its_position(old: Path) -> None:
    write(old / "state" / "0" / "0" / "1.delta", "x")
    new = taken(old, "abc", "abcd")
    assert (new / "state" / "0" / "0" / "1.delta").read_text() == "x"
    with pytest.raises(Unsupported, match="state of its own"):
        take_over(str(old), list("abc"), str(old.with_name("newer")), list("bc"), 7)


def test_ticks_come_and_go_beside_the_state_of_a_frame(old: Path) -> None:
    write(old / "state" / "0" / "0" / "1.delta", "x")
    for number, (before, after) in enumerate([("ab#", "ab"), ("ab#", "abc#"), ("abc", "abc#")]):
        listed = [[TICKS if name == "#" else name for name in names] for names in (before, after)]
        new = old.with_name(f"new{number}")
        take_over(str(old), listed[0], str(new), listed[1], 7)
        assert (new / "state" / "0" / "0" / "1.delta").exists()


class Ledger:
    """Positions without an engine."""

    def __init__(self, epoch: int = -1) -> None:
        self.positions: dict[str, Any] = {}
        self.epoch = epoch

    def annotate(self, positions: dict[str, Any]) -> None:
        self.positions = positions


def test_a_driver_goes_on_with_its_own_generation_only(tmp_path: Path) -> None:
    ledger, driver = Ledger(), Checkpoint(f"file://{tmp_path}")
    first = driver.generation(ledger, ["a"])
    assert driver.generation(ledger, ["a"]) == first
    second = Checkpoint(str(tmp_path)).generation(ledger, ["a"])
    assert second != first and driver.generation(ledger, ["a"]) not in (first, second)
    driver.abandon()
    last = driver.generation(ledger, ["a"])
    assert sorted(name.partition("-")[0] for name in names(tmp_path)) == ["2", "3"]
    assert ledger.positions["spark"] == {"number": 3, "folder": Path(last).name, "sources": ["a"]}


def test_a_checkpoint_elsewhere_has_one_generation() -> None:
    ledger = Ledger()
    folder = Checkpoint("s3a://bucket/x").generation(ledger, ["a"])
    assert Checkpoint("s3a://bucket/x").generation(ledger, ["a"]) == folder
    with pytest.raises(Unsupported, match="the set of sources changed"):
        Checkpoint("s3a://bucket/x").generation(ledger, ["a", "b"])
