"""A file sink on S3: a driver that was replaced and wakes up at any request changes nothing, nor does a late copy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from rejoinder import errors
from rejoinder.connectors.files import target as file_sink
from rejoinder.store.objects.object_store import ObjectStore, Option
from rejoinder.testing import Driver
from tests.features.sinks.test_fenced_sinks import insert


class Bucket:
    """S3 as the file system of a sink. `before` is called before each request that changes something."""

    def __init__(self, store: ObjectStore, options: dict[str, Option]) -> None:
        self.system = pafs.S3FileSystem(
            access_key=str(options["key"]),
            secret_key=str(options["secret"]),
            endpoint_override=str(options["endpoint"]).removeprefix("http://"),
            scheme="http",
            region="us-east-1",
        )
        self.folder = store.url.removeprefix("s3://") + "/out"
        self.before: Callable[[str, str], None] = lambda what, path: None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.system, name)
        if name not in ("move", "open_output_stream", "delete_dir", "delete_file", "create_dir"):
            return method

        def changing(path: str, *rest: Any, **more: Any) -> Any:
            self.before(name, path)
            return method(path, *rest, **more)

        return changing

    def rows(self) -> list[int]:
        found = self.system.get_file_info(pafs.FileSelector(self.folder))
        paths = [info.path for info in found if info.base_name.endswith(".parquet")]
        return sorted(a for path in paths for a in pq.read_table(path, filesystem=self.system)["a"].to_pylist())

    def progress(self) -> dict[str, Any]:
        with self.system.open_input_file(f"{self.folder}/_rejoinder/progress.json") as file:
            found: dict[str, Any] = json.loads(file.read())
        return found


@pytest.fixture
def bucket(s3_store: ObjectStore, s3_options: dict[str, Option], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket(s3_store, s3_options)
    monkeypatch.setattr(file_sink, "open_path", lambda path: (made, made.folder))
    return made


def opened(tmp_path: Path) -> Driver:
    driver = Driver(store=tmp_path / "state")
    if driver.epoch < 0:
        driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
        driver.sink("v", "parquet", path="s3://bucket/out")
        insert(driver, 0)
    return driver


def test_every_request_at_which_a_replaced_driver_may_wake_up(tmp_path: Path, bucket: Bucket) -> None:
    value = 0
    asleep = opened(tmp_path)
    for request in range(20):
        seen: list[str] = []
        live: list[Driver] = []
        last = value

        def sleep(what: str, path: str) -> None:
            seen.append(what)  # noqa: B023
            if len(seen) == request + 1:  # noqa: B023
                bucket.before = lambda what, path: None
                live.append(opened(tmp_path))  # noqa: B023
                insert(live[0], last + 2)  # noqa: B023

        bucket.before = sleep
        try:
            insert(asleep, value + 1)
        except (errors.Fenced, errors.SinkFailed):
            assert live
        bucket.before = lambda what, path: None
        if not live:
            assert request > 5, "all requests of a delivery were tried"
            return
        value += 2
        assert bucket.rows() == list(range(value + 1)), f"request {request}: {seen}"
        assert bucket.progress()["epoch"] == value, f"request {request}: {seen}"
        asleep = live[0]
        insert(asleep, value + 1)
        value += 1
        assert bucket.rows() == list(range(value + 1)) and bucket.progress()["epoch"] == value
    raise AssertionError("a delivery takes more requests than were tried")


def test_a_late_copy_of_a_file_or_a_note_does_no_harm(tmp_path: Path, bucket: Bucket) -> None:
    driver = opened(tmp_path)
    late: list[tuple[str, bytes]] = []
    for value in (1, 2, 3):
        if value == 2:
            for name in ("epoch-0000000001-0000.parquet", "_rejoinder/progress.json"):
                with bucket.system.open_input_file(f"{bucket.folder}/{name}") as file:
                    late.append((name, file.read()))
        insert(driver, value)
    for name, data in late:
        with bucket.system.open_output_stream(f"{bucket.folder}/{name}") as file:
            file.write(data)
    assert bucket.rows() == [0, 1, 2, 3] and bucket.progress()["epoch"] == 1
    driver = opened(tmp_path)
    insert(driver, 4)
    assert bucket.rows() == [0, 1, 2, 3, 4] and bucket.progress()["epoch"] == 4
