"""Traces of the document as SQL on the Driver: inputs are partitions of a source, or branches of a union; joins too.

Views show what a watermark releases: rows with the times 0, 1, 2, … wait in them, and those below it are out.
After every step the flow is restarted with another parallelism.
"""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.errors import WatermarkRegress
from rejoinder.testing import Driver
from tests.golden.keyed_watermarks.played import of_kind, trace

TIMES = 130


class Inputs:
    """A flow whose inputs are partitions of one source, or sources of a union; a view for each key."""

    def __init__(self, case: dict[str, Any], shape: str) -> None:
        self.driver, self.shape = Driver(), shape
        messages = [step["in"]["watermark"]["key"] for step in case["steps"] if "watermark" in step["in"]]
        self.keys = {key: f"k{key}" for key in dict.fromkeys(messages)}
        names = list(self.keys.values())
        columns = ", ".join(f"{name} BIGINT, WATERMARK {name}" for name in names)
        self.sources = [f"s{number}" for number in range(case["inputs"] if shape == "union" else 1)]
        for name in self.sources:
            options = "" if shape == "union" else f"OPTIONS (partitions '{case['inputs']}', partition_by 'p')"
            self.driver.sql(f"CREATE STREAM {name} (p INT, {columns}) {options}")
        rows = " UNION ALL ".join(f"SELECT {', '.join(names)} FROM {name}" for name in self.sources)
        for name in names:
            self.driver.sql(f"CREATE VIEW v_{name} AS SELECT {name} FROM ({rows}) AS q EMIT WHEN WATERMARK PAST {name}")
        for number in range(TIMES):
            self.driver.insert("s0", {"p": 0, **dict.fromkeys(names, number)})
        self.step()

    def step(self) -> None:
        """Let an epoch pass, and a restart."""
        self.driver.step()
        self.driver.restart(parallelism=1 + self.driver.epoch % 3)

    def play(self, happening: dict[str, Any]) -> None:
        """Say what happens at an input."""
        at = happening["input"]
        source, partition = ("s0", at) if self.shape == "partitions" else (f"s{at}", 0)
        if "watermark" in happening:
            name, time = self.keys[happening["watermark"]["key"]], happening["watermark"]["ts"]
            self.driver.watermark(source, time, name, partition)
        elif "idle" in happening:
            self.driver.idle(source, partition)
        else:
            self.driver.insert(source, {"p": at})

    def released(self) -> dict[int, int]:
        """How far each key is released, by what its view shows."""
        found = {key: len(self.driver.table(f"v_{name}")) for key, name in self.keys.items()}
        return {key: count for key, count in found.items() if count}

    def is_idle(self) -> bool:
        return all(row["idle_since"] is not None for row in self.driver.sql("SHOW WATERMARKS"))


@pytest.mark.parametrize("shape", ["partitions", "union"])
@pytest.mark.parametrize("case", of_kind("coalescer"), ids=[case["id"] for case in of_kind("coalescer")])
def test_coalescer(case: dict[str, Any], shape: str) -> None:
    inputs = Inputs(case, shape)
    expected: dict[int, int] = {}
    idle = False
    for number, step in enumerate(case["steps"]):
        if step.get("fails") == "monotonicity":
            with pytest.raises(WatermarkRegress):
                inputs.play(step["in"])
            continue
        inputs.play(step["in"])
        inputs.step()
        released = [entry["watermark"] for entry in step["out"] if "watermark" in entry]
        expected |= {mark["key"]: mark["ts"] for mark in released}
        idle = "idle" in step["in"] and (idle or any("idle" in entry for entry in step["out"]))
        assert inputs.released() == expected, f"step {number + 1}"
        assert inputs.is_idle() == idle, f"step {number + 1}"


SCANS = "".join(f"CREATE STREAM scan{n} (id INT, t BIGINT, WATERMARK t);" for n in (1, 2, 3))
JOIN = "SELECT scan1.id, scan1.t, scan2.t AS u FROM scan1 JOIN scan2 ON scan1.id = scan2.id AND "
JOIN += "scan2.t BETWEEN scan1.t - 5 AND scan1.t + 5"
MERGES = {
    "kw-dag-two-scans": ("scan2", "SELECT t FROM scan1 UNION ALL SELECT t FROM scan2"),
    "kw-dag-merge": ("scan3", f"SELECT t FROM ({JOIN}) AS j UNION ALL SELECT t FROM scan3"),
}


def say(driver: Driver, happening: dict[str, Any]) -> None:
    if "watermark" in happening:
        driver.watermark(happening["vertex"], happening["watermark"]["ts"])
    elif "idle" in happening:
        driver.idle(happening["vertex"])
    else:
        driver.insert(happening["vertex"], {"id": 1, "t": next(iter(happening["item"].values()))})


@pytest.mark.parametrize("name", list(MERGES))
def test_merges(name: str) -> None:
    """KWM-IDL-11."""
    active, merge = MERGES[name]
    driver = Driver()
    driver.sql(SCANS)
    driver.sql(f"CREATE VIEW aggr AS SELECT t, count(*) AS n FROM ({merge}) AS q GROUP BY t EMIT WHEN WATERMARK PAST t")
    driver.insert(active, *({"id": 0, "t": number} for number in range(TIMES)))
    driver.step()
    released = 0
    for number, step in enumerate(trace(name)["steps"]):
        say(driver, step["in"])
        driver.step()
        driver.restart(parallelism=1 + number % 3)
        for entry in step["out"].get("aggr", []):
            released = entry["watermark"]["ts"]
        assert len(driver.table("aggr")) == released, f"step {number + 1}"


def test_a_join_of_an_idle_join() -> None:
    """KWM-IDL-12: rows of the other side are kept, however far their own watermark is."""
    driver = Driver()
    driver.sql(SCANS)
    within = "j.id = scan3.id AND scan3.t BETWEEN j.t - 5 AND j.t + 5"
    driver.sql(f"CREATE VIEW outer_join AS SELECT scan3.t FROM ({JOIN}) AS j JOIN scan3 ON {within}")
    for number, step in enumerate(trace("kw-dag-join-idle")["steps"]):
        say(driver, step["in"])
        driver.step()
        driver.restart(parallelism=1 + number % 3)
        kept = [row["rows"] for row in driver.arrangements() if row["relation"] == "scan3#on-time"]
        wanted = step.get("joinOuter_state", {}).get("buffer_from_scan3")
        assert wanted is None or set(kept) == {wanted}, f"step {number + 1}"
    assert driver.table("outer_join") == []
    driver.insert("scan1", {"id": 1, "t": 7})
    driver.insert("scan2", {"id": 1, "t": 9})
    driver.step()
    assert driver.table("outer_join") == [{"t": 5}], "the side that is back finds what was kept"
