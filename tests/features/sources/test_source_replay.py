"""Sources that are read again while their storage fails: the statement fails, and the answer does not change."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.connectors.kafka.spark import topics
from rejoinder.engine.hydration import source_replay, topic_replay
from rejoinder.engine.hydration.source_replay import SourceReplay
from rejoinder.errors import Incomplete, MissingInput, Unsupported
from rejoinder.formats.file_signatures import local_signature
from rejoinder.ir.catalog import Source
from rejoinder.ir.streams import StreamId
from rejoinder.state.positions import Position, Positions
from rejoinder.store.commits.file_log import FileRead
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver
from tests.features.definitions.test_completeness import DAILY, counts, files, write
from tests.features.definitions.test_completeness import rows as rows_of

__all__ = ["files"]  # a fixture

SCHEMA = pa.schema([("k", pa.int64())])
FEED = Source("s", "changelog", SCHEMA, op="_change_type", format="delta", options={"path": "x"})
TOPIC = Source("s", "stream", SCHEMA, format="kafka", options={"topic": "x", "bootstrap": "h:1"})


def failing_once(failure: OSError, then: Callable[..., Any]) -> Callable[..., Any]:
    failures = [failure]

    def call(*given: object) -> object:
        if failures:
            raise failures.pop()
        return then(*given)

    return call


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "input/output error"), PermissionError(errno.EACCES, "denied")])
@pytest.mark.parametrize("start", ["", "STARTING AT NOW", "STARTING AT TIMESTAMP '2026-01-02'"])
def test_a_file_that_cannot_be_looked_at_fails_the_statement(
    files: Callable[[], Driver], monkeypatch: pytest.MonkeyPatch, start: str, failure: OSError
) -> None:
    driver = files()
    version = driver._manifest.version
    for text in (f"CREATE VIEW daily {start} AS {DAILY}", f"{DAILY} {start}"):
        with monkeypatch.context() as patch:
            patch.setattr(source_replay, "local_signature", failing_once(failure, local_signature))
            with pytest.raises(MissingInput, match=r"cannot be accessed to read it again[\s\S]*Hint: check"):
                driver.sql(text)
    assert driver._manifest.version == version
    assert counts(driver.sql(f"{DAILY} {start}")) == [100, 100, 100], "it is complete, so no start counts"
    driver.sql(f"CREATE VIEW daily {start} AS {DAILY}")
    assert counts(driver.table("daily")) == [100, 100, 100]


def test_a_folder_that_became_a_file_has_no_file(files: Callable[[], Driver], tmp_path: Path) -> None:
    driver = files()
    (tmp_path / "in").rename(tmp_path / "moved")
    (tmp_path / "in").write_text("x")
    with pytest.raises(Incomplete, match="no longer exists"):
        driver.sql(DAILY)


def test_a_file_that_changes_before_it_is_read_again(
    files: Callable[[], Driver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = files()
    looked = SourceReplay.unreadable

    def change(*given: Any) -> str | None:
        found = looked(*given)
        write(tmp_path / "in", "1.json", rows_of(1, 5))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(SourceReplay, "unreadable", change)
        with pytest.raises(MissingInput, match=r"1\.json` was changed while it was read again"):
            driver.sql(f"CREATE VIEW daily STARTING AT NOW AS {DAILY}")
    assert [view.name for view in driver.catalog.views] == ["pairs"]
    with pytest.raises(Incomplete, match="was changed after it was read"):
        driver.sql(f"CREATE VIEW daily AS {DAILY}")


def remote(failure: OSError) -> str | None:
    """Why a source whose file lies elsewhere cannot be read again."""
    store = open_store("memory://rereading")
    source = Source("s", "stream", SCHEMA, format="json", options={"path": "s3://b/in"})
    positions = Positions().with_files(store, StreamId("id"), 0, [FileRead("s3://b/in/1.json", 0, "3#tag")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_replay, "open_path", failing_once(failure, lambda path: None))
        return SourceReplay(store, positions, {"s": "id"}).unreadable(source)


def test_a_remote_file_that_is_missing_is_a_reason_and_a_lost_connection_is_none() -> None:
    assert remote(FileNotFoundError(errno.ENOENT, "path does not exist")) == (
        "its file `s3://b/in/1.json` no longer exists"
    )
    with pytest.raises(MissingInput, match=r"cannot be accessed[\s\S]*curlCode: 28"):
        remote(OSError("AWS Error NETWORK_CONNECTION: curlCode: 28, timeout was reached"))


def asked(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Mapping[int, int]]) -> str | None:
    monkeypatch.setattr(topics, "first_offsets", answer)
    reader = topic_replay.TopicReader(SimpleNamespace(session=None))  # type: ignore[arg-type]
    return reader.unreadable(TOPIC, Position(json.dumps({"x": {"0": 5, "1": 7}})))


def test_a_broker_that_does_not_answer_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> Mapping[int, int]:
        raise MissingInput("no Kafka broker answers at h:1")

    with pytest.raises(MissingInput, match="no Kafka broker answers"):
        asked(monkeypatch, silent)
    assert asked(monkeypatch, lambda *_: {0: 0, 1: 0}) is None
    assert asked(monkeypatch, lambda *_: {0: 0}) == "its topic `x` has no partition 1 any more"
    assert "begins at offset 3 of partition 0" in (asked(monkeypatch, lambda *_: {0: 3, 1: 0}) or "")


@pytest.mark.parametrize("source", [TOPIC, FEED], ids=["topic", "feed"])
def test_without_spark_it_is_not_known_whether_a_topic_can_be_read_again(source: Source) -> None:
    positions = Positions({StreamId("id"): Position(json.dumps({"x": {"0": 5}}))})
    replay = SourceReplay(open_store("memory://rereading"), positions, {"s": "id"})
    with pytest.raises(Unsupported, match="read again on Spark only") as refused:
        replay.unreadable(source)
    assert "no longer kept" not in str(refused.value) and "rejoinder run" in str(refused.value)


def test_rows_that_a_test_inserted_into_a_topic_are_not_read_again() -> None:
    replay = SourceReplay(open_store("memory://rereading"), Positions(), {"s": "id"})
    assert replay.unreadable(TOPIC) == "a topic is read again on Spark only"
    counted = replace(TOPIC, options={**TOPIC.options, "max_ahead": "1"})
    assert "max_ahead" in (replay.unreadable(counted) or "")


@pytest.mark.parametrize(
    ("option", "is_kept"), [("", False), (", cleanSource 'off'", False), (", cleanSource 'delete'", True)]
)
@pytest.mark.filterwarnings("ignore:files of `s` stay")
def test_rows_of_files_that_spark_removes_are_kept_for_later_views(tmp_path: Path, option: str, is_kept: bool) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "1.json").write_text('{"k": 1}\n{"k": 2}\n', encoding="utf-8")
    driver = Driver()
    driver.sql(f"CREATE STREAM s (k INT) USING json OPTIONS (path '{folder}'{option})")
    driver.sql("CREATE VIEW n AS SELECT count(*) AS n FROM s")
    driver.step()
    (folder / "1.json").unlink()
    if is_kept:
        driver.sql("CREATE VIEW later AS SELECT k FROM s")
        assert sorted(row["k"] for row in driver.table("later")) == [1, 2]
    else:
        with pytest.raises(Incomplete, match=r"1\.json"):
            driver.sql("CREATE VIEW later AS SELECT k FROM s")
