"""Drivers that come and go: two at a time on one state, and one after the other, killed at random moments.

`make test` kills a JVM once; `make test-deep` kills drivers and JVMs again and again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver
from tests.deep import DEEP, IS_DEEP, one_seed
from tests.faults import victim

SCRIPT = Path(victim.__file__)
KILLS = 6 if IS_DEEP else 1


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The rows of `v` when all files are read."""
    folder = tmp_path_factory.mktemp("expected")
    victim.write_input(folder)
    victim.run(Driver(store=folder / "state", parallelism=2), folder)
    return victim.outcome(folder / "state", ["v"])["v"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the input of all epochs; the files of the later ones wait."""
    victim.write_input(tmp_path)
    return tmp_path


class Following:
    """A driver in a process of its own that goes on until it is stopped."""

    def __init__(self, folder: Path, name: str) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("w") as log:
            command = [sys.executable, str(SCRIPT), str(folder), "follow"]
            environment = {**os.environ, "TMPDIR": str(folder)}  # what the dead leave goes with the test
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def said(self) -> str:
        return self.log.read_text()


def committed(folder: Path) -> int:
    """The last committed version of the state: definitions and takeovers count as well."""
    manifest = latest(open_store(str(folder / "state")))
    return -1 if manifest is None else manifest.version


def epoch(folder: Path) -> int:
    """The last committed epoch."""
    manifest = latest(open_store(str(folder / "state")))
    return -1 if manifest is None else manifest.epoch


def has_committed(folder: Path, before: int, driver: Following) -> bool:
    """Whether a driver that runs on Spark by now has committed something."""
    return committed(folder) > before and bool(jvms_of(driver.process.pid))


def wait_for(condition: Callable[[], bool], driver: Following | rj.Flow, seconds: float = 120) -> None:
    """Wait for something that a driver is going to do."""
    end = time.monotonic() + seconds
    while not condition():
        if isinstance(driver, rj.Flow):
            assert time.monotonic() < end and driver.is_running
        else:
            assert time.monotonic() < end and not driver.is_over(), driver.said()
        time.sleep(0.02)


@pytest.mark.slow
def test_two_drivers_on_one_state(spark: SparkSession, folder: Path, expected: Any) -> None:
    """The one that comes later takes over; the other one stops and says why. Nothing is lost or doubled."""
    with Following(folder, "first") as first:
        wait_for(lambda: epoch(folder) == victim.FIRST - 1, first)
        second = rj.Flow(folder / "state", spark=spark, parallelism=2)
        second.start()
        try:
            for number in range(victim.FIRST, victim.LAST + 1):
                victim.release(folder, "ab", [number])
                wait_for(lambda number=number: epoch(folder) >= number, second)  # type: ignore[misc]
            assert first.process.wait(60) == 1
            assert "Fenced: [RJ401] another driver has" in first.said()
            assert "Hint: run one driver per state" in first.said()
        finally:
            second.stop()
    assert victim.outcome(folder / "state", ["v"])["v"] == expected


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_drivers_are_killed_at_random_moments(spark: SparkSession, folder: Path, expected: Any) -> None:
    """The driver or its JVM, at whatever it does; then one goes to the end."""
    chance = random.Random(one_seed())
    for kill in range(KILLS):
        before = committed(folder)
        with Following(folder, f"driver{kill}") as driver:
            wait_for(partial(has_committed, folder, before, driver), driver)
            victim.release(folder, "ab", [victim.FIRST + kill])
            time.sleep(chance.random())
            kill_some_of(driver.process.pid, chance)
            driver.process.wait(60)
    victim.release(folder, "ab", range(victim.FIRST, victim.LAST + 1))
    (folder / "stop").touch()
    victim.follow(rj.Flow(folder / "state", spark=spark, parallelism=2), folder)
    assert victim.outcome(folder / "state", ["v"])["v"] == expected


def kill_some_of(pid: int, chance: random.Random) -> None:
    """Kill the JVM of a driver, or in a deep run the driver or its JVM. Elsewhere drivers are killed at every point."""
    jvms = jvms_of(pid)
    chance.choice([psutil.Process(pid), *jvms] if IS_DEEP else jvms).kill()


def jvms_of(pid: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children() if "java" in each.name()]


@DEEP
def test_workers_are_killed_at_random_moments(spark: SparkSession, folder: Path, expected: Any) -> None:
    chance = random.Random(one_seed())
    jvm = psutil.Process(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    done = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        # A worker is a child of the daemon that is a child of the JVM. Three times: the fourth would end the job.
        while len(killed) < 3 and not done.wait(0.5 + chance.random()):
            with suppress(psutil.NoSuchProcess):  # one that ended by itself meanwhile; the next turn finds another
                workers = [worker for daemon in jvm.children() for worker in daemon.children()]
                if workers:
                    worker = chance.choice(workers)
                    worker.kill()
                    killed.append(worker.pid)

    flow = rj.Flow(folder / "state", spark=spark, parallelism=2)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        victim.run(flow, folder)
    finally:
        done.set()
        killer.join()
    assert killed and victim.outcome(folder / "state", ["v"])["v"] == expected
