"""Traces of the join, as SQL on the Driver: each step an epoch; rows are emitted in the step of the document."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from rejoinder.errors import LimitReached, RejoinderError, WatermarkRegress
from rejoinder.testing import Driver

DATA = Path(__file__).parent.parent / "data" / "hazelcast_join" / "traces.yaml"
GOLDEN: dict[str, list[dict[str, Any]]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
TRACES = GOLDEN["traces"]
DEFECT = "hz-ft-left-unfixed"  # what must not happen
LAZY = (
    "hz-single-input-left-lazy"  # what an operator may do that knows no conditions of one input; SQL always knows them
)
FAILURES: dict[str, tuple[type[RejoinderError], str]] = {
    "monotonicity": (WatermarkRegress, "the watermark of `l`.`time` does not rise"),
    "accumulation_limit": (LimitReached, "`v` would keep 4 rows of state"),
}
CASES = [trace for trace in TRACES if trace["id"] not in (DEFECT, LAZY)]


class Trace:
    """A trace's join as a view of two streams."""

    def __init__(self, trace: dict[str, Any], parallelism: int) -> None:
        join = trace["join"]
        self.is_time = "INTERVAL" in join["condition"]
        self.inputs = [each["name"] for each in join["inputs"]]
        self.names: list[dict[str, str]] = [{} for _ in self.inputs]
        self.keys = {w["key"]: (each["name"], w["column"]) for each in join["inputs"] for w in each["wm"]}
        self.texts: set[str] = set()
        for step in trace["steps"]:
            for column, value in step["in"].get("item", {}).items():
                self._add(step["in"]["ordinal"], column)
                self.texts |= {column} if isinstance(value, str) else set()
        for ordinal, each in enumerate(join["inputs"]):
            for watermark in each["wm"]:
                self._add(ordinal, watermark["column"])
        for column in re.findall(r"\b[a-z]\w*\.\w+", join["condition"]):
            if not any(column in names for names in self.names):
                self._add(self.inputs.index(column.split(".")[0]), column)
        self.driver = Driver(parallelism=parallelism)
        for ordinal, each in enumerate(join["inputs"]):
            times = {watermark["column"] for watermark in each["wm"]}
            columns = [f"{n} {self._type(c, c in times)}" for c, n in self.names[ordinal].items()]
            marks = [f"WATERMARK {self.names[ordinal][column]}" for column in times]
            self.driver.sql(f"CREATE STREAM {each['name']} ({', '.join([*columns, *marks])})")
        qualified = {c: f"{self.inputs[o]}.{n}" for o, names in enumerate(self.names) for c, n in names.items()}
        condition = re.sub(r"\b[a-z]\w*\.\w+", lambda found: qualified[found.group()], join["condition"])
        shown = ", ".join(f"{place} AS `{column.replace('.', '_')}`" for column, place in qualified.items())
        words = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}[join["kind"]]
        left, right = self.inputs
        cap = join.get("max_accumulated_records")
        limits = "" if cap is None else f"OPTIONS (max_state_rows '{cap}') "
        self.driver.sql(
            f"CREATE VIEW v {limits}AS SELECT {shown} FROM {left} {words} {right} ON {condition} EMIT FINAL"
        )
        self.columns = list(qualified)
        self.before: dict[str, Any] = {}

    def _add(self, ordinal: int, column: str) -> None:
        alias, name = column.split(".")
        self.names[ordinal][column] = name if alias == self.inputs[ordinal] else f"{alias}_{name}"

    def _type(self, column: str, is_event_time: bool) -> str:
        if self.is_time and is_event_time:
            return "TIMESTAMP"
        return "STRING" if column in self.texts else "BIGINT"

    def value(self, value: Any) -> Any:
        """A time as the view has it."""
        return (
            datetime.fromisoformat(value) if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) else value
        )

    def fail(self, step: dict[str, Any]) -> None:
        """Let something happen that has to fail: by its error, and without a trace in what is committed."""
        before = self.driver.epoch, self.driver.table("v"), self.driver.arrangements(), self.driver.watermarks("v")
        error, fact = FAILURES[step["fails"]]
        with pytest.raises(error) as raised:
            self.play(step["in"])
        assert raised.value.fact.startswith(fact) and raised.value.hint
        self.driver.restart()
        now = self.driver.epoch, self.driver.table("v"), self.driver.arrangements(), self.driver.watermarks("v")
        assert now == before

    def play(self, happening: dict[str, Any]) -> Counter[tuple[Any, ...]]:
        """Play one event, and return the rows that are emitted."""
        if "restart" in happening:
            self.driver.restart()
        elif "watermark" in happening:
            relation, column = self.keys[happening["watermark"]["key"]]
            name = self.names[self.inputs.index(relation)][column]
            self.driver.watermark(relation, self.time(happening["watermark"]["ts"]), name)
        else:
            names = self.names[happening["ordinal"]]
            row = {names[column]: self.value(value) for column, value in happening["item"].items()}
            self.driver.insert(self.inputs[happening["ordinal"]], row)
        changes = self.driver.step()["v"]
        times = [(row[name], least) for row, _ in changes for name, least in self.before.items()]
        assert all(time is None or time >= least for time, least in times), "no row is below an emitted watermark"
        assert all(time >= self.before.get(name, time) for name, time in self.driver.watermarks("v").items())
        self.before = self.driver.watermarks("v")
        assert all(diff > 0 for _, diff in changes), "a row that is final is never taken back"
        return Counter({tuple(row.values()): diff for row, diff in changes})

    def watermarks(self) -> dict[int, Any]:
        """The watermarks of the view's event times, by their keys."""
        found = self.driver.watermarks("v")
        return {
            key: found[column.replace(".", "_")]
            for key, (_, column) in self.keys.items()
            if column.replace(".", "_") in found
        }

    def time(self, time: Any) -> Any:
        """A time of a watermark as the view has it."""
        return datetime.fromtimestamp(time / 1000) if self.is_time and isinstance(time, int) else self.value(time)

    def wanted(self, out: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        """The rows of a step's output, padded with NULL."""
        rows = [entry["row"] for entry in out if "row" in entry]
        return Counter(tuple(self.value(row.get(column)) for column in self.columns) for row in rows)


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("trace", CASES, ids=[trace["id"] for trace in CASES])
def test_rows_are_emitted_in_their_step(trace: dict[str, Any], parallelism: int) -> None:
    played = Trace(trace, parallelism)
    for number, step in enumerate(trace["steps"]):
        if "fails" in step:
            played.fail(step)
            continue
        assert played.play(step["in"]) == played.wanted(step.get("out", [])), f"step {number + 1}"
        if step.get("dropped") == "late":
            assert played.driver.late("v")


def test_the_defect_of_the_document_does_not_happen() -> None:
    """HZJ-FT-03: what was late before the restart is late after it, and no NULL stands for a row that was there."""
    (trace,) = [trace for trace in TRACES if trace["id"] == DEFECT]
    played = Trace(trace, 1)
    *first, late, last = [step["in"] for step in trace["steps"]]
    out = sum((played.play(happening) for happening in first), Counter[tuple[Any, ...]]())
    assert out == played.wanted(trace["steps"][1]["out"]) and played.play(late) == Counter()
    assert [row["input"] for row in played.driver.late("v")] == ["l"]
    assert played.play(last) == Counter(), "nothing is padded"


def test_conditions_of_one_input_are_known_at_once() -> None:
    """HZJ-PRC-12: pending rows of an operator that does not know them are emitted with the row."""
    (trace,) = [trace for trace in TRACES if trace["id"] == LAZY]
    played = Trace(trace, 1)
    rows = [entry for step in trace["steps"] for entry in step["out"] if "row" in entry]
    assert played.play(trace["steps"][0]["in"]) == played.wanted(rows)
    assert [played.play(step["in"]) for step in trace["steps"][1:]] == [Counter(), Counter()]


@pytest.mark.parametrize("trace", CASES, ids=[trace["id"] for trace in CASES])
def test_watermarks_follow_the_rule_of_what_is_kept(trace: dict[str, Any]) -> None:
    """The last watermark that was emitted for each column, by the `min_buffer` rule, after each step."""
    played, last = Trace(trace, 1), dict[int, Any]()
    outputs = "out" if trace["formula"] == "min_buffer" else "out_min_buffer_formula"
    for number, step in enumerate(trace["steps"]):
        if "fails" in step:
            played.fail(step)
        else:
            played.play(step["in"])
        for entry in step.get(outputs, step.get("out", [])):
            if "watermark" in entry:
                last[entry["watermark"]["key"]] = played.time(entry["watermark"]["ts"])
        assert played.watermarks() == last, f"step {number + 1}"


@pytest.mark.parametrize("case", GOLDEN["checks"], ids=[case["id"] for case in GOLDEN["checks"]])
def test_checks(case: dict[str, Any]) -> None:
    """HZJ-PRC-15, HZJ-PRC-16: whether the condition is true of a pair."""
    (trace,) = [trace for trace in TRACES if trace["id"] == case["join"]]
    played, probe = Trace(trace, 2), case["probe"]
    (given,) = case["given"].values()
    known = {column: -(2**40) if value == -math.inf else value for column, value in given.items()}
    assert played.play({"ordinal": 1 - probe["ordinal"], "item": known}) == Counter()
    assert played.play({"ordinal": probe["ordinal"], "item": probe["item"]}).total() == case["joins"]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("case", GOLDEN["pipelines"], ids=[case["id"] for case in GOLDEN["pipelines"]])
def test_pipelines(case: dict[str, Any], parallelism: int) -> None:
    """HZJ-BND-09: a join of joins, each with its own bounds; as views, one of which reads the other.

    The watermarks of both follow what is kept, those of the second by what the first holds.
    """
    driver = Driver(parallelism=parallelism)
    for name in ("orders", "deliveries", "returns"):
        driver.sql(f"CREATE STREAM {name} (time BIGINT, WATERMARK time)")
    first, second = (join["condition"] for join in case["joins"].values())
    driver.sql(
        f"CREATE VIEW join1 AS SELECT o.time AS o, d.time AS d FROM orders o JOIN deliveries d ON {first} EMIT FINAL;"
        f"CREATE VIEW join2 AS SELECT l.o, l.d, r.time AS r FROM join1 l JOIN returns r"
        f" ON {second.replace('d.time', 'l.d')} EMIT FINAL"
    )
    last: dict[str, dict[str, int]] = {"join1": {}, "join2": {}}
    for number, step in enumerate(case["steps"]):
        given = step["in"]
        if "watermark" in given:
            driver.watermark(given["source"], given["watermark"]["ts"])
        else:
            driver.insert(given["source"], {"time": next(iter(given["item"].values()))})
        changes = driver.step()
        for view in last:
            out = step[f"{view}_out"]
            wanted = [{column[0]: time for column, time in entry["row"].items()} for entry in out if "row" in entry]
            assert changes[view] == [(row, 1) for row in wanted], f"step {number + 1}, {view}"
            last[view] |= marks(out)
            assert driver.watermarks(view) == last[view], f"step {number + 1}, {view}"


def marks(out: list[dict[str, Any]]) -> dict[str, int]:
    """The watermarks of a step, by the column of the pipeline."""
    return {"odr"[entry["watermark"]["key"]]: entry["watermark"]["ts"] for entry in out if "watermark" in entry}
