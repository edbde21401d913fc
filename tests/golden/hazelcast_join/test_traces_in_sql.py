"""Traces of the join, as SQL on the Driver: each step an epoch; rows come out in the step that the document gives."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from rejoinder.testing import Driver

DATA = Path(__file__).parent.parent / "data" / "hazelcast_join" / "traces.yaml"
TRACES: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))["traces"]
# What they are about is said of the operator, not of SQL: limits of a processor, a watermark that falls, a defect.
ABOUT_THE_OPERATOR = {
    "hz-d-wm-monotonicity-violation",
    "hz-d-accumulation-cap",
    "hz-d-accumulation-cap-freed",
    "hz-ft-left-unfixed",
    "hz-single-input-left-lazy",
}
# A second event time of an input that no condition bounds: the engine promises nothing, as it does not know how old the
# times in kept rows are. (Runs have the span of the one column that they are forgotten by.)
WITHOUT_A_BOUND = {
    "hz-3way-join2",
    "hz-d-late-any-key",
    "hz-d-two-bounds-max",
    "hz-d-same-input-bound-not-used",
}
CASES = [trace for trace in TRACES if trace["id"] not in ABOUT_THE_OPERATOR]


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
        self.driver.sql(f"CREATE VIEW v AS SELECT {shown} FROM {left} {words} {right} ON {condition} EMIT FINAL")
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

    def play(self, happening: dict[str, Any]) -> Counter[tuple[Any, ...]]:
        """Let one thing happen, and give the rows that come out."""
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
def test_rows_come_out_in_their_step(trace: dict[str, Any], parallelism: int) -> None:
    played = Trace(trace, parallelism)
    for number, step in enumerate(trace["steps"]):
        assert played.play(step["in"]) == played.wanted(step.get("out", [])), f"step {number + 1}"
        if step.get("dropped") == "late":
            assert played.driver.late("v")


@pytest.mark.parametrize("trace", CASES, ids=[trace["id"] for trace in CASES])
def test_watermarks_follow_the_rule_of_what_is_kept(trace: dict[str, Any]) -> None:
    """The last watermark that came out for each column, by the `min_buffer` rule, after each step."""
    played, last = Trace(trace, 1), dict[int, Any]()
    outputs = "out" if trace["formula"] == "min_buffer" else "out_min_buffer_formula"
    for number, step in enumerate(trace["steps"]):
        played.play(step["in"])
        for entry in step.get(outputs, step.get("out", [])):
            if "watermark" in entry:
                last[entry["watermark"]["key"]] = played.time(entry["watermark"]["ts"])
        found = played.watermarks()
        if trace["id"] in WITHOUT_A_BOUND:
            last_known = {key: time for key, time in last.items() if key in found}
            assert found == last_known, f"step {number + 1}"
        else:
            assert found == last, f"step {number + 1}"
