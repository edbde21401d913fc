"""Every trace of the document as SQL on the Driver: inputs are partitions of a source, or branches of a union.

Views show what a watermark releases: rows with the times 0, 1, 2, … wait in them, and those below it are out.
After every step the flow is restarted with another parallelism.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from rejoinder.errors import FunctionFailed, WatermarkRegress
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
    """KWM-DEF-02: what a step releases is what the trace says, and no more."""
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


def released(driver: Driver) -> dict[str, int]:
    """How far each column of the one source is."""
    found = {row["column"]: row["source_watermark"] for row in driver.sql("SHOW WATERMARKS")}
    return {column: time for column, time in found.items() if time is not None}


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


@pytest.mark.parametrize("case", of_kind("processor_input"), ids=[case["id"] for case in of_kind("processor_input")])
def test_processor_input(case: dict[str, Any]) -> None:
    """KWM-API-01, KWM-API-02, KWM-API-04: an edge is a source, its instances are partitions.

    What a join is told of an edge does not wait for the other one; a union over both is told the least.
    """
    driver = Driver()
    for edge in case["edges"]:
        name, count = f"e{edge['ordinal']}", edge["upstream_instances"]
        driver.sql(f"CREATE STREAM {name} (t BIGINT, WATERMARK t) OPTIONS (partitions '{count}')")
    driver.sql("CREATE VIEW pairs AS SELECT e0.t, e1.t AS u FROM e0 JOIN e1 ON e1.t BETWEEN e0.t - 5 AND e0.t + 5")
    both = "SELECT t FROM e0 UNION ALL SELECT t FROM e1"
    driver.sql(f"CREATE VIEW merged AS SELECT t FROM ({both}) AS q EMIT WHEN WATERMARK PAST t")
    driver.insert("e0", *({"t": number} for number in range(TIMES)))
    driver.step()
    per_edge: dict[str, int] = {}
    together = 0
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        driver.watermark(f"e{given['edge']}", given["watermark"]["ts"], partition=given["upstream"])
        driver.step()
        driver.restart(parallelism=1 + number % 3)
        for call in step["out"]:
            if "ordinal" in call:
                per_edge[f"e{call['ordinal']}"] = call["watermark"]["ts"]
            else:
                together = call["watermark"]["ts"]
        shown = {row["source"]: row["source_watermark"] for row in driver.sql("SHOW WATERMARKS")}
        assert {name: time for name, time in shown.items() if time is not None} == per_edge, f"step {number + 1}"
        if case["id"] == "kw-per-ordinal-and-coalesced":  # else the edges have different keys, and no union
            assert len(driver.table("merged")) == together, f"step {number + 1}"


@pytest.mark.parametrize("case", of_kind("simple_processor"), ids=[case["id"] for case in of_kind("simple_processor")])
def test_simple_processor(case: dict[str, Any]) -> None:
    """KWM-RUL-04, KWM-API-05, KWM-API-06: a projection hands each watermark on at once, whatever the other is at."""
    driver = Driver()
    driver.sql("CREATE STREAM s (item STRING, k1 BIGINT, k2 BIGINT, WATERMARK k1, WATERMARK k2)")
    driver.sql("CREATE VIEW v AS SELECT item FROM s WHERE item IS NOT NULL")
    for name in ("k1", "k2"):
        driver.sql(f"CREATE VIEW past_{name} AS SELECT {name} FROM s EMIT WHEN WATERMARK PAST {name}")
    driver.insert("s", *({"k1": number, "k2": number} for number in range(TIMES)))
    driver.step()
    expected = {"k1": 0, "k2": 0}
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        if "item" in given:
            driver.insert("s", {"item": given["item"], "k1": TIMES, "k2": TIMES})
        else:
            driver.watermark("s", given["watermark"]["ts"], f"k{given['watermark']['key']}")
        items = [row["item"] for row, _ in driver.step()["v"]]
        assert items == [entry["item"] for entry in step["out"] if "item" in entry], f"step {number + 1}"
        marks = [entry["watermark"] for entry in step["out"] if "watermark" in entry]
        expected |= {f"k{mark['key']}": mark["ts"] for mark in marks}
        assert {name: len(driver.table(f"past_{name}")) for name in expected} == expected, f"step {number + 1}"


@pytest.mark.parametrize("case", of_kind("window_aggregation"), ids=lambda case: str(case["id"]))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_window_aggregation(case: dict[str, Any], parallelism: int) -> None:
    """KWM-RUL-05, KWM-WIN-01, KWM-WIN-03, KWM-WIN-04: a window is emitted when its own watermark is past its end."""
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE STREAM my_stream (time1 BIGINT, time2 BIGINT, WATERMARK time1, WATERMARK time2)")
    driver.sql(
        "CREATE VIEW v AS SELECT window_start, window_end, time2, count(*) AS count "
        f"FROM TUMBLE(my_stream, DESCRIPTOR({case['window']['time']}), {case['window']['size']}) "
        "GROUP BY 1, 2, 3 EMIT WHEN WATERMARK PAST window_end"
    )
    columns = {key: name for name, key in case["wm_keys"].items()}
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        if "item" in given:
            driver.insert("my_stream", given["item"])
        else:
            driver.watermark("my_stream", given["watermark"]["ts"], columns[given["watermark"]["key"]])
        rows = [row for row, _ in driver.step()["v"]]
        wanted = [entry["row"] for entry in step["out"]]
        assert sorted(rows, key=str) == sorted(wanted, key=str), f"step {number + 1}"
        for name, limit in step.get("output_wm_constraint", {}).items():
            found = driver.watermarks("v").get(name)
            assert name == "after_rows" or found is None or found <= limit["max"], f"step {number + 1}"


def test_a_source_follows_its_newest_row_at_a_lag() -> None:
    """KWM-GEN-01: also if the rows come in the wrong order."""
    driver = Driver()
    driver.sql("CREATE STREAM s (t INT, WATERMARK t DELAY OF 3); CREATE VIEW v AS SELECT t FROM s")
    found = []
    for time in (10, 8, 12):
        driver.insert("s", {"t": time})
        driver.step()
        found += [row["watermark"] for row in driver.sql("SHOW WATERMARKS")]
    assert found == [7, 7, 9]


def test_each_branch_has_its_own_time() -> None:
    """KWM-WIN-02: a window of a union takes the time that each branch gives it, and ends when the slower is past it."""
    driver = Driver()
    driver.sql("CREATE STREAM a (k INT, t INT, WATERMARK t); CREATE STREAM b (k INT, u INT, WATERMARK u)")
    both = "SELECT k, t AS time FROM a UNION ALL SELECT k, u FROM b"
    query = f"SELECT k, TUMBLE(time, 5) AS w, count(*) AS n FROM ({both}) AS q GROUP BY k, w"
    driver.sql(f"CREATE VIEW v AS {query} EMIT FINAL")
    driver.insert("a", {"k": 1, "t": 1}, {"k": 1, "t": 7})
    driver.insert("b", {"k": 1, "u": 3}, {"k": 2, "u": 4})
    driver.watermark("a", 9)
    assert driver.step()["v"] == []
    driver.watermark("b", 5)
    out = sorted((row["k"], row["w"]["start"], row["n"]) for row, _ in driver.step()["v"])
    assert out == [(1, 0, 2), (2, 0, 1)]


def test_late_is_strictly_below() -> None:
    """KWM-DEF-01: and a row without a time is late."""
    driver = Driver()
    driver.sql("CREATE STREAM s (t INT, WATERMARK t)")
    driver.sql("CREATE VIEW v AS SELECT TUMBLE(t, 5) AS w, count(*) AS n FROM s GROUP BY w EMIT FINAL")
    driver.watermark("s", 10)
    driver.step()
    driver.insert("s", {"t": 9}, {"t": 10}, {"t": None})
    driver.watermark("s", 15)
    assert driver.step()["v"] == [({"w": {"start": 10, "end": 15}, "n": 1}, 1)]
    assert sorted(row["row"] for row in driver.late("v")) == ['{"t":9}', '{"t":null}']


async def answer(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take longer for the rows that come first; have none for some."""
    await asyncio.sleep(0.001 * (5 - row["t"] % 5))
    if row["item"] == "unknown":
        raise LookupError("unknown")
    return {"length": len(row["item"])}


@pytest.mark.parametrize("ordered", ["async_ordered", "async_unordered"])
def test_watermarks_wait_for_answers(ordered: str) -> None:
    """KWM-ASY-01, KWM-ASY-02, KWM-ASY-03: an epoch ends with its last answer, and watermarks move with epochs.

    The rows and watermarks of a trace, all in one epoch and each in its own; then an answer that never comes.
    """
    for case in of_kind(ordered):
        for together in (True, False):
            driver = Driver(functions=[__name__])
            driver.sql("CREATE STREAM s (item STRING, t BIGINT, u BIGINT, WATERMARK t, WATERMARK u)")
            call = f"ENRICH(TABLE s, '{__name__}:answer', 'length INT')"
            driver.sql(f"CREATE VIEW v AS SELECT item, length FROM {call}")
            columns, last, out = {0: "t", 1: "u"}, dict[str, int](), list[str]()
            for step in case["steps"]:
                if "item" in step["in"]:
                    driver.insert("s", {"item": step["in"]["item"], "t": 99, "u": 99})
                elif "watermark" in step["in"]:
                    mark = step["in"]["watermark"]
                    driver.watermark("s", mark["ts"], columns[mark["key"]])
                    last[columns[mark["key"]]] = mark["ts"]
                if not together:
                    out += [row["item"] for row, _ in driver.step()["v"]]
                    assert released(driver) == last
            out += [row["item"] for row, _ in driver.step()["v"]]
            assert sorted(out) == sorted(step["in"]["item"] for step in case["steps"] if "item" in step["in"])
            assert released(driver) == last
            driver.insert("s", {"item": "unknown", "t": 50, "u": 50})
            driver.watermark("s", 60, "t")
            with pytest.raises(FunctionFailed):
                driver.step()
            assert released(driver) == last, "not before the row is answered"
