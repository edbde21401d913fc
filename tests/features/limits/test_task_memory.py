"""A task that needs more memory than it may take fails its epoch by name, whoever asks for the memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from rejoinder.errors import LimitReached
from rejoinder.host import memory
from rejoinder.host.caps import Caps, set_caps, use_caps
from rejoinder.testing import Driver

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def usual_caps() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield
    use_caps(Caps())
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def _refused(driver: Driver, most: int) -> None:
    """The next epoch is refused with so many bytes, and runs without the limit, in the same process."""
    set_caps({"max_memory": most})
    with pytest.raises(LimitReached, match="needs more memory than a task may take") as stopped:
        driver.step()
    assert f"`max_memory` is {most:,}" in str(stopped.value.detail)
    assert driver.epoch == 0
    set_caps({"max_memory": 0})


def test_an_expression(tmp_path: object) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (s STRING, n INT); CREATE VIEW v AS SELECT length(repeat(s, n)) AS n FROM t")
    driver.insert("t", {"s": "x", "n": 1})
    driver.step()
    driver.insert("t", *({"s": "x", "n": 20_000_000 + number} for number in range(60)))
    _refused(driver, 400 * MEGABYTE)
    driver.step()
    assert len(driver.table("v")) == 61


def test_a_join(tmp_path: object) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (k INT, x BIGINT); CREATE STREAM b (k INT, y BIGINT)")
    driver.sql("CREATE VIEW v AS SELECT count(*) AS n FROM a JOIN b ON a.k = b.k WHERE x + y > 0")
    driver.insert("a", {"k": 1, "x": 1})
    driver.step()
    for name, column in (("a", "x"), ("b", "y")):
        driver.insert(name, *({"k": 1, column: number} for number in range(4_000)))
    _refused(driver, 200 * MEGABYTE)
    driver.step()
    assert [tuple(row.values()) for row in driver.table("v")] == [(4_001 * 4_000 - 1,)]


def test_the_share_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 100 << 30)
    monkeypatch.setattr(memory, "_tasks_at_once", 1)
    assert memory.memory_cap() == 80 << 30
    memory.share_memory(8)
    assert memory.memory_cap() == 10 << 30
    memory.share_memory(1000)
    assert memory.memory_cap() == 1 << 30


def test_the_memory_of_a_container_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_container_limits", lambda: iter([2 << 30, 3 << 30]))
    memory.available_bytes.cache_clear()
    try:
        assert memory.available_bytes() == 2 << 30
    finally:
        memory.available_bytes.cache_clear()
