"""Objects behave alike on memory, local disk and S3, and fail with what to do about it."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from rejoinder import errors
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import ObjectStore, open_store
from tests.stores import SpawnPython


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
    store.drop_cached("a/b")
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
    with pytest.raises(errors.StorageFailed, match="was never used before"):
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
        lambda: memory_store.drop_cached(name),
    ]
    for call in calls:
        with pytest.raises(errors.StateError, match="invalid name of an object"):
            call()


@pytest.mark.parametrize("prefix", ["..", "/", "/etc", "a/../.."])
def test_hostile_prefixes_are_refused(disk_store: ObjectStore, prefix: str) -> None:
    with pytest.raises(errors.StateError, match="invalid name"):
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
    ["", "ftp://x/y", "http://x", "s3://", "memory://", "file://host/x", "s3://k:s3cr3t@b/x", "s3://b/x?secret=s3cr3t"],
)
def test_unusable_urls(url: str) -> None:
    with pytest.raises(errors.Unsupported) as raised:
        open_store(url)
    assert "s3cr3t" not in str(raised.value) and raised.value.hint


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store("~/state").path == str(tmp_path / "state")


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
