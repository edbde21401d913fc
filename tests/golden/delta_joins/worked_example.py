"""The worked example of `golden/data/delta_joins`, played on the Driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from rejoinder.testing import Driver

DATA: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent.parent / "data" / "delta_joins" / "requirements.yaml").read_text(encoding="utf-8")
)
EXAMPLE: dict[str, Any] = DATA["worked_example"]
STEPS: list[dict[str, Any]] = EXAMPLE["steps"]
INPUTS: list[str] = EXAMPLE["input_order"]
COLUMNS: dict[str, list[str]] = EXAMPLE["columns"]
OUTPUT: list[str] = EXAMPLE["output_columns"]
Q1: str = EXAMPLE["sql"].rstrip(";")
Q2: str = EXAMPLE["arrangements"]["q2"]["sql"].rstrip(";")
Q3: str = EXAMPLE["arrangements"]["q3"]["sql"].rstrip(";")
Row = tuple[Any, ...]
Bag = Counter[Row]


def kind_of(column: str) -> str:
    """The SQL type of a column."""
    return "DATE" if column.endswith("date") else "STRING" if column.endswith("segment") else "BIGINT"


def value_of(column: str, value: Any) -> Any:
    """A value of the data file as the Driver takes and gives it."""
    return date.fromisoformat(value) if column.endswith("date") else value


def example_flow(*, parallelism: int = 1, inputs: Mapping[str, Sequence[str]] = COLUMNS) -> Driver:
    """The three inputs, empty."""
    driver = Driver(parallelism=parallelism)
    for name, columns in inputs.items():
        driver.sql(f"CREATE CHANGELOG {name} ({', '.join(f'{column} {kind_of(column)}' for column in columns)})")
    return driver


def updates(step: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], int]]:
    """The update triples of a step: input, record, diff."""
    if step["time"] == 0:
        triples = [(name, data, 1) for name, listed in EXAMPLE["initial"].items() for data in listed]
    else:
        triples = [(update["input"], update["data"], update["diff"]) for update in step["in"]]
    return [(name, record(COLUMNS[name], data), diff) for name, data, diff in triples]


def record(columns: Sequence[str], data: Sequence[Any]) -> dict[str, Any]:
    """A record as the Driver takes it."""
    return {column: value_of(column, value) for column, value in zip(columns, data, strict=True)}


def feed(driver: Driver, step: Mapping[str, Any]) -> dict[str, Bag]:
    """Play one step and give the net changes of each view."""
    for name, row, diff in updates(step):
        act = driver.insert if diff > 0 else driver.delete
        act(name, *[row] * abs(diff))
    return {view: signed(changes) for view, changes in driver.step().items()}


def signed(changes: Iterable[tuple[Mapping[str, Any], int]]) -> Bag:
    """Changes of a view as a signed multiset of rows in the order of `output_columns`."""
    return Counter({tuple(row[column] for column in OUTPUT if column in row): diff for row, diff in changes})


def content(rows: Iterable[Mapping[str, Any]]) -> Bag:
    """The rows of a view as a multiset."""
    return Counter(tuple(row[column] for column in OUTPUT) for row in rows)


def wanted(triples: Iterable[Mapping[str, Any]]) -> Bag:
    """Output triples of the data file as a signed multiset."""
    return Counter({tuple(record(OUTPUT, triple["data"]).values()): triple["diff"] for triple in triples})


def accumulated(key: str, until: int) -> Bag:
    """What the output triples of all steps up to a time come to."""
    total: Bag = Counter()
    for step in STEPS[: until + 1]:
        for row, diff in wanted(step[key]).items():
            total[row] += diff
    return Counter({row: count for row, count in total.items() if count})
