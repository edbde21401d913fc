"""Stores to test on: memory, local disk, and an S3 server in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import ObjectStore, Option, open_store

SpawnPython: TypeAlias = "Callable[..., subprocess.Popen[str]]"


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
            except OSError:
                assert server.poll() is None, "the S3 server has ended"
                time.sleep(0.05)
        yield endpoint
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def s3_options(s3_endpoint: str, tmp_path: Path) -> dict[str, Option]:
    return {
        "endpoint": s3_endpoint,
        "allow_http": True,
        "region": "us-east-1",
        "key": "AKIDEXAMPLE",
        "secret": "wJalrXUtnFEMI-K7MDENG",
        "retry_seconds": 2,
        "cache_dir": str(tmp_path / "cache"),
    }


@pytest.fixture
def s3_store(s3_endpoint: str, s3_options: dict[str, Option]) -> ObjectStore:
    bucket = f"b-{uuid.uuid4().hex}"
    urllib.request.urlopen(urllib.request.Request(f"{s3_endpoint}/{bucket}", method="PUT")).close()
    return open_store(f"s3://{bucket}/some/prefix", **s3_options)


@pytest.fixture
def disk_store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "state"))


@pytest.fixture
def memory_store() -> Iterator[ObjectStore]:
    name = uuid.uuid4().hex
    yield open_store(f"memory://{name}")
    drop_memory(name)


@pytest.fixture(params=["memory", "disk", "s3"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    found: ObjectStore = request.getfixturevalue(f"{request.param}_store")
    return found


@pytest.fixture(params=["disk", "s3"])
def shared_store(request: pytest.FixtureRequest) -> ObjectStore:
    """A store that other processes see."""
    found: ObjectStore = request.getfixturevalue(f"{request.param}_store")
    return found


@pytest.fixture
def spawn_python() -> Iterator[SpawnPython]:
    """Start `code` in a new Python; `store` in it, given by its URL and options, is that of the test."""
    started: list[subprocess.Popen[str]] = []

    def spawn(code: str, store: ObjectStore) -> subprocess.Popen[str]:
        options = dict(store._options)
        imported = "from rejoinder.store.objects.object_store import open_store"
        head = f"{imported}\nstore = open_store({store.url!r}, **{options!r})\n"
        process = subprocess.Popen(
            [sys.executable, "-c", head + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        started.append(process)
        return process

    yield spawn
    for process in started:
        process.kill()
        process.communicate()
