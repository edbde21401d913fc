"""Objects after a fork, and in a bucket: faults of network and rights, uploads in parts, the cache on the host."""

from __future__ import annotations

import http.server
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from rejoinder import errors
from rejoinder.store.objects.object_store import ObjectStore, Option, open_store
from tests.stores import SpawnPython


# Python 3.12 and later warn of any fork beside threads, which is what these tests are about.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_disk_store_after_fork(disk_store: ObjectStore) -> None:
    disk_store.put("a", b"1")
    assert _forked(lambda: disk_store.put("b", disk_store.get("a"))) == 0
    assert disk_store.get("b") == b"1"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_remote_store_after_fork_is_refused_and_does_not_hang(s3_store: ObjectStore) -> None:
    s3_store.put("a", b"1")

    def use() -> None:
        with pytest.raises(errors.StorageFailed, match="before it forked"):
            s3_store.get("a")

    assert _forked(use) == 0
    assert s3_store.get("a") == b"1"


def _forked(action: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def test_secrets_are_in_no_text(s3_options: dict[str, Option], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = {**s3_options, "token": "t0ken-t0ken", "endpoint": "http://127.0.0.1:9", "retry_seconds": 0}
    store = open_store("s3://bucket/prefix", **options)
    texts = [repr(store), str(store), f"{store}", store.url, repr(vars(store)), repr(store._options)]
    for call in (
        lambda: store.get("a"),
        lambda: store.put("a", b""),
        lambda: store.list(),
        lambda: store.delete(["a"]),
    ):
        with pytest.raises(errors.StorageFailed) as raised:
            call()
        error: BaseException | None = raised.value
        while error is not None:
            texts += [str(error), repr(error)]
            error = error.__cause__ or error.__context__
    texts.append(caplog.text)
    for secret in (s3_options["key"], s3_options["secret"], "t0ken-t0ken"):
        assert not [text for text in texts if str(secret) in text]


def test_an_unreachable_endpoint_fails_with_a_hint(s3_options: dict[str, Option]) -> None:
    store = open_store("s3://bucket", **{**s3_options, "endpoint": "http://127.0.0.1:9", "retry_seconds": 0})
    with pytest.raises(errors.StorageFailed, match=r"could not read `a/b` in s3://bucket[^$]*check endpoint"):
        store.get("a/b")


def test_a_missing_bucket_is_not_a_missing_object(s3_options: dict[str, Option]) -> None:
    store = open_store("s3://no-such-bucket", **s3_options)
    for call in (lambda: store.find("a"), lambda: store.put("a", b""), lambda: store.list()):
        with pytest.raises(errors.StorageFailed, match=r"no such bucket[^$]*create the bucket"):
            call()


@pytest.fixture
def refusing_endpoint() -> Iterator[str]:
    class Refuse(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(403)
            self.end_headers()

        do_PUT = do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815 - named by http.server

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuse) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_refused_credentials_fail_with_a_hint(refusing_endpoint: str, s3_options: dict[str, Option]) -> None:
    store = open_store("s3://bucket", **{**s3_options, "endpoint": refusing_endpoint})
    for call in (lambda: store.get("a"), lambda: store.put_if_absent("a", b""), lambda: store.exists("a")):
        with pytest.raises(errors.StorageFailed, match=r"permission denied[^$]*`a`[^$]*check the credentials"):
            call()


def test_big_objects_go_up_in_parts(s3_store: ObjectStore, tmp_path: Path) -> None:
    parts = [os.urandom(11 << 20), os.urandom(9 << 20), b"tail"]
    s3_store.write("big", parts)
    s3_store.drop_cached("big")
    assert s3_store.map("big", (20 << 20) + 4) == pa.py_buffer(b"".join(parts))


def test_remote_objects_are_downloaded_once(s3_store: ObjectStore, tmp_path: Path) -> None:
    s3_store.put("runs/a", b"x" * 1000)
    assert not _copies(tmp_path)
    first = s3_store.map("runs/a", 1000)
    [copy] = _copies(tmp_path)
    assert copy.read_bytes() == b"x" * 1000
    inode = copy.stat().st_ino
    assert s3_store.map("runs/a", 1000) == first
    assert copy.stat().st_ino == inode
    copy.write_bytes(b"short")  # a damaged copy: of the wrong size it is fetched anew at once
    assert s3_store.map("runs/a", 1000).to_pybytes() == b"x" * 1000
    _copies(tmp_path)[0].write_bytes(b"y" * 1000)  # of the right size: once somebody doubts it
    s3_store.drop_cached("runs/a")
    assert s3_store.map("runs/a", 1000).to_pybytes() == b"x" * 1000


def test_written_objects_are_cached_and_deleted_ones_are_not(s3_store: ObjectStore, tmp_path: Path) -> None:
    s3_store.write("runs/a", [b"12", b"34"])
    assert [copy.read_bytes() for copy in _copies(tmp_path)] == [b"1234"]
    s3_store.delete(["runs/a"])
    assert _copies(tmp_path) == []


def test_the_cache_drops_the_least_recently_used(s3_store: ObjectStore, tmp_path: Path) -> None:
    url, options = s3_store.url, {**s3_store._options, "cache_bytes": 5000}
    store = open_store(url, **options)
    for i in range(4):
        store.write(f"r{i}", bytes(1000))
        time.sleep(0.01)
    store.map("r0", 1000)
    for i in range(4, 7):
        time.sleep(0.01)
        store.write(f"r{i}", bytes(1000))
    kept = {copy.name for copy in _copies(tmp_path)}
    assert {"r0", "r6"} <= kept and not {"r1", "r2"} & kept
    assert sum(copy.stat().st_size for copy in _copies(tmp_path)) <= 5000
    assert store.map("r1", 1000).to_pybytes() == bytes(1000)
    big = bytes(20_000)
    store.write("big", big)
    assert store.map("big", len(big)).to_pybytes() == big


def test_many_processes_share_a_cache(s3_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path) -> None:
    contents = {f"r{i}": bytes([i]) * 50_000 for i in range(10)}
    for name, content in contents.items():
        s3_store.put(name, content)
    small = open_store(s3_store.url, **{**s3_store._options, "cache_bytes": 200_000})
    code = """
for round in range(5):
    for i in range(10):
        assert store.map(f"r{i}", 50_000).to_pybytes() == bytes([i]) * 50_000
print("fine")
"""
    children = [spawn_python(code, small) for _ in range(2)]
    assert [child.communicate(timeout=60)[0].strip() for child in children] == ["fine"] * 2


def test_an_unusable_cache_folder_says_so(s3_store: ObjectStore) -> None:
    s3_store.put("a", b"1")
    store = open_store(s3_store.url, **{**s3_store._options, "cache_dir": "/proc/no-such-place"})
    store.write("b", b"1")  # the object is stored; only its copy is not
    with pytest.raises(errors.StorageFailed, match=r"cache folder /proc/no-such-place[^$]*another `cache_dir`"):
        store.map("a", 1)


def _copies(tmp_path: Path) -> list[Path]:
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    return [path for path in files if path.parent.name not in (".locks", ".temporary")]
