"""Objects behave alike on memory, local disk and S3, and fail with what to do about it."""

from __future__ import annotations

import http.server
import logging
import os
import pickle
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from rejoinder import errors
from rejoinder.store.memory import drop_memory
from rejoinder.store.objects import ObjectStore, Option, open_store
from tests.unit.store.conftest import SpawnPython


def test_put_replaces(store: ObjectStore) -> None:
    store.put("a/b", b"one")
    store.put("a/b", pa.py_buffer(b"three"))
    assert store.get("a/b") == b"three"
    assert store.size("a/b") == 5


def test_put_if_absent_takes_a_name_once(store: ObjectStore) -> None:
    assert store.put_if_absent("a/b", b"first") is True
    assert store.put_if_absent("a/b", b"second") is False
    assert store.get("a/b") == b"first"
    store.delete(["a/b"])
    assert store.put_if_absent("a/b", b"third") is True


def test_of_many_threads_one_gets_the_name(store: ObjectStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: store.put_if_absent("a", b"%d" % i), range(16)))
    assert won.count(True) == 1
    assert store.get("a") == b"%d" % won.index(True)


def test_missing_objects(store: ObjectStore) -> None:
    assert store.find("a/b") is None
    assert not store.exists("a/b")
    for read in (lambda: store.get("a/b"), lambda: store.size("a/b"), lambda: store.map("a/b", 3)):
        with pytest.raises(errors.Corrupt, match=r"missing[^$]*`a/b`[^$]*Hint"):
            read()
    store.delete(["a/b"])
    store.delete([])
    store.forget("a/b")
    assert store.list("a") == []


@pytest.mark.parametrize("size", [0, 1, 5, 100_000])
def test_write_then_map(store: ObjectStore, size: int) -> None:
    content = os.urandom(size)
    store.write("runs/r1", [content[: size // 2], pa.py_buffer(content[size // 2 :]), memoryview(b"")])
    store.write("runs/r2", pa.py_buffer(content))
    for name in ("runs/r1", "runs/r2"):
        assert store.map(name, size).to_pybytes() == content
        assert store.get(name) == content


def test_a_mapped_object_survives_its_deletion(store: ObjectStore) -> None:
    store.write("r", b"content" * 1000)
    buffer = store.map("r", 7000)
    store.delete(["r"])
    assert buffer.to_pybytes() == b"content" * 1000
    assert not store.exists("r")
    with pytest.raises(errors.Corrupt, match="missing"):
        store.map("r", 7000)


@pytest.mark.parametrize("committed", [0, 3, 5])
def test_an_object_of_the_wrong_size_is_corrupt(store: ObjectStore, committed: int) -> None:
    store.put("r", b"1234")
    with pytest.raises(errors.Corrupt, match=f"`r` in .* has 4 bytes, and {committed} were committed"):
        store.map("r", committed)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_write_refuses_a_used_name(kind: str, request: pytest.FixtureRequest) -> None:
    store: ObjectStore = request.getfixturevalue(f"{kind}_store")
    store.write("r", b"1")
    with pytest.raises(errors.StorageFailed, match="never have been used"):
        store.write("r", b"2")
    assert store.get("r") == b"1"


def test_list_and_delete(store: ObjectStore) -> None:
    names = ["a/1", "a/b/2", "ab/3", "a=1/x-y_z.json", "top"]
    for name in names:
        store.put(name, name.encode())
    assert store.list() == sorted(names)
    assert store.list("a") == store.list("a/") == ["a/1", "a/b/2"]
    assert store.list("nothing") == []
    now = time.time()
    assert all(entry.size == len(entry.name) and abs(entry.modified - now) < 60 for entry in store.entries())
    store.delete(["a/1", "never", "top", "a/b/2"])
    assert store.list() == ["a=1/x-y_z.json", "ab/3"]


def test_a_folder_is_no_object(store: ObjectStore) -> None:
    store.put("a/b", b"1")
    assert not store.exists("a")
    assert store.find("a") is None
    assert not store.exists("a/b/c")
    with pytest.raises(errors.Corrupt):
        store.map("a", 1)


HOSTILE = [
    "", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", "./a", "a//b", "a/", "~/x", "a\\b", "a\0b", "a b", "a\n",
    "é", "a/%2e%2e/b", "a?b", "a#b", "C:x", ".temporary/x", "a/.hidden", "a" * 300, "a/" * 500 + "a", "$(x)", "a*",
    "a'b", 'a"b',
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_by_every_call(memory_store: ObjectStore, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: memory_store.put(name, b""),
        lambda: memory_store.put_if_absent(name, b""),
        lambda: memory_store.write(name, b""),
        lambda: memory_store.get(name),
        lambda: memory_store.find(name),
        lambda: memory_store.map(name, 0),
        lambda: memory_store.exists(name),
        lambda: memory_store.size(name),
        lambda: memory_store.delete(["fine", name]),
        lambda: memory_store.forget(name),
    ]
    for call in calls:
        with pytest.raises(errors.StateError, match="not the name of an object"):
            call()


@pytest.mark.parametrize("prefix", ["..", "/", "/etc", "a/../.."])
def test_hostile_prefixes_are_refused(disk_store: ObjectStore, prefix: str) -> None:
    with pytest.raises(errors.StateError, match="not the name"):
        disk_store.list(prefix)


def test_making_a_store_touches_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "new" / "state"))
    assert store.list() == [] and not store.exists("a")
    assert list(tmp_path.iterdir()) == []
    store.put("deep/er/a", b"1")
    assert store.get("deep/er/a") == b"1"


@pytest.mark.parametrize("folder", ["plain", "with space", "per%20cent", "question?mark#hash", "ünï", "back\\slash"])
def test_paths_and_file_urls_name_the_same(tmp_path: Path, folder: str) -> None:
    store = open_store(str(tmp_path / folder))
    store.put("a", b"1")
    assert (tmp_path / folder / "a").read_bytes() == b"1"
    assert store.is_local and store.url.startswith("file:///")
    assert open_store(store.url).get("a") == b"1"
    assert pickle.loads(pickle.dumps(store)).get("a") == b"1"  # noqa: S301 - what Spark does with it


def test_a_relative_path_is_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("state")
    monkeypatch.chdir("/")
    store.put("a", b"1")
    assert (tmp_path / "state" / "a").exists()


@pytest.mark.parametrize(
    "url",
    ["ftp://x/y", "http://x", "s3://", "memory://", "file://host/x", "s3://k:s3cr3t@b/x", "s3://b/x?secret=s3cr3t"],
)
def test_unusable_urls(url: str) -> None:
    with pytest.raises(errors.Unsupported) as raised:
        open_store(url)
    assert "s3cr3t" not in str(raised.value)


def test_unknown_options_name_the_near_ones() -> None:
    with pytest.raises(errors.UnknownName, match=r"no option `secrt`[^$]*did you mean `secret`"):
        open_store("s3://bucket", secrt="x")


def test_memory_stores_are_shared_by_name() -> None:
    open_store("memory://one").put("a", b"1")
    assert open_store("memory://one").get("a") == b"1"
    assert open_store("memory://two").find("a") is None
    drop_memory("one")
    assert open_store("memory://one").find("a") is None


def test_memory_map_gives_the_stored_buffer(memory_store: ObjectStore) -> None:
    memory_store.write("a", b"12345")
    assert memory_store.map("a", 5).address == memory_store.map("a", 5).address


def test_a_store_travels_to_another_process(shared_store: ObjectStore, spawn_python: SpawnPython) -> None:
    shared_store.put("a", b"from the parent")
    copy = pickle.loads(pickle.dumps(shared_store))  # noqa: S301 - what Spark does with it
    assert copy == shared_store and hash(copy) == hash(shared_store) and copy.get("a") == b"from the parent"
    child = spawn_python("print(store.get('a').decode()); store.write('b', b'from the child')", shared_store)
    assert child.communicate(timeout=60)[0].strip() == "from the parent"
    assert shared_store.map("b", 14).to_pybytes() == b"from the child"


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
    s3_store.forget("big")
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
    s3_store.forget("runs/a")
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


def test_a_killed_writer_leaves_all_or_nothing(
    disk_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path
) -> None:
    code = """
import itertools, sys
print("started", flush=True)
for i in itertools.count():
    store.put_if_absent(f"manifests/{i:020d}", b"%d " % i * 20_000)
    store.put("hint", b"%d " % i * 20_000)
"""
    for attempt in range(3):
        child = spawn_python(code, disk_store)
        assert child.stdout and child.stdout.readline()
        while len(disk_store.list("manifests")) < 2:
            time.sleep(0.01)
        time.sleep(0.08 + 0.023 * attempt)
        child.kill()
        child.wait()
        names = disk_store.list("manifests")
        assert len(names) > 1
        for name in names:
            assert disk_store.get(name) == b"%d " % int(name[-20:]) * 20_000
        hint = disk_store.get("hint")
        assert hint == hint[: hint.index(b" ") + 1] * 20_000
        disk_store.delete(names)
    disk_store.sweep(older_than_seconds=-1)
    assert list((tmp_path / "state" / ".temporary").iterdir()) == []
    assert disk_store.list() == ["hint"]


def test_a_full_disk_fails_cleanly(disk_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path) -> None:
    # A limit on file sizes meets the same code as a full disk, and needs no file system of its own.
    code = f"""
import resource
from rejoinder import errors
store.put("before", b"1")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, {resource.RLIM_INFINITY}))
for call in (store.put, store.put_if_absent, store.write):
    try:
        call("runs/a", bytes(100_000))
    except errors.StorageFailed as error:
        print(error.fact, "|", error.detail, "|", error.hint)
"""
    out, _ = spawn_python(code, disk_store).communicate(timeout=60)
    lines = out.strip().splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("no space left") and "`runs/a`" in line and "free space" in line
    assert disk_store.list() == ["before"]
    assert list((tmp_path / "state" / ".temporary").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_really_full_disk(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True).returncode:
        pytest.skip("mounting does not work here")
    try:
        store = open_store(str(place))
        store.put("manifests/latest", b"1")
        for call in (store.put, store.put_if_absent, store.write):
            with pytest.raises(errors.StorageFailed, match=r"no space left[^$]*`r`[^$]*free space"):
                call("r", bytes(1 << 20))
        assert store.list() == ["manifests/latest"] and store.get("manifests/latest") == b"1"
        store.write("r", b"there is room again")
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(errors.StorageFailed, match="Hint"):
        open_store(str(tmp_path / "state")).put("a", b"1")


def test_permission_denied(disk_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path) -> None:
    disk_store.put("a", b"1")
    tmp_path.chmod(0o500)
    code = """
import os
from rejoinder import errors
from rejoinder.store import disk
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
for call in (store.put, store.put_if_absent, store.write):
    try:
        call("runs/a", b"1")
    except errors.StorageFailed as error:
        print(error.fact, "|", error.detail, "|", error.hint)
"""
    (tmp_path / "state").chmod(0o500)
    try:
        out, _ = spawn_python(code, disk_store).communicate(timeout=60)
    finally:
        (tmp_path / "state").chmod(0o700)
        tmp_path.chmod(0o700)
    lines = out.strip().splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("permission denied") and "`runs/a`" in line and "permissions of the folder" in line


def test_read_only_file_system() -> None:
    with pytest.raises(errors.StorageFailed, match="Hint"):
        open_store("/proc/state").put("a", b"1")


def test_sync_flushes_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(str(Path(f"/proc/self/fd/{fd}").readlink())))
    open_store(str(tmp_path / "lax")).write("a/b", b"1")
    assert flushed == []
    store = open_store(str(tmp_path / "state"), sync=True)
    store.write("runs/r", b"1")
    assert {str(tmp_path / name) for name in ("state", "state/runs", "state/runs/r")} <= set(flushed)
    del flushed[:]
    store.put_if_absent("runs/m", b"1")
    assert str(tmp_path / "state" / "runs") in flushed and any(".temporary/" in name for name in flushed)
