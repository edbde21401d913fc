"""Bounds: every condition of the document in time gives the slack that it says, or none where it says none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rejoinder.errors import PlanningError
from rejoinder.ir.catalog import Catalog
from rejoinder.ir.logical import Filter, Join, Node, Predicate, Project
from rejoinder.plan.join.block_bounds import all_bounds, direct_bounds, slack_of
from rejoinder.plan.normalize import normalize
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.statements.statement_parser import CreateSource, parse_statements

DATA = Path(__file__).parent.parent / "data" / "hazelcast_join" / "bounds.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))["cases"]
ONLY_CORE = {"b-same-wm-key-both-inputs"}  # SQL cannot say it: columns of different inputs are different
IN_SQL = [case for case in CASES if case["id"] not in ONLY_CORE]
# Of these the file does not say it: nothing is bounded under OR or NOT, nor by a column without a watermark.
NO_BOUND = ("b-doc-or", "b-or-mixed", "b-or-hidden-in-not", "b-not-between", "b-no-watermark-right")
# The condition itself is refused: an interval that is not a literal, or a product of one (optional in the file).
NO_EXPRESSION = {"b-doc-nonconstant", "b-interval-minute-cast"}


def predicates(node: Node) -> list[Predicate]:
    match node:
        case Join():
            return [*predicates(node.left), *predicates(node.right), *node.predicates]
        case Filter():
            return [*predicates(node.input), *node.predicates]
        case Project():
            return predicates(node.input)
        case _:
            return []


def plain(case: dict[str, Any]) -> dict[str, Any]:
    """A case whose inputs' columns are named after their input: `o.time` of an input `l` becomes `l.o_time`."""
    names = {
        column: f"{alias}.{column.replace('.', '_')}"
        for alias, times in case["inputs"].items()
        for column in times
        if not column.startswith(f"{alias}.")
    }

    def renamed(column: str) -> str:
        return names.get(column, column)

    condition = re.sub(r"\b\w+\.\w+\b", lambda found: renamed(found.group()), case["on"])
    inputs = {alias: [renamed(column) for column in times] for alias, times in case["inputs"].items()}
    postpone = {
        renamed(one): {renamed(other): slack for other, slack in more.items()}
        for one, more in case.get("postpone", {}).items()
    }
    return {**case, "on": condition, "inputs": inputs, "postpone": postpone}


def bounds(case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """The case's condition as a join, and its bounds by column as the file writes them."""
    condition = case["on"]
    is_time = "INTERVAL" in condition.upper()
    catalog = Catalog()
    for alias, times in case["inputs"].items():
        used = set(re.findall(rf"\b{alias}\.(\w+)", condition)) | {t.split(".")[1] for t in times} or {"x"}
        columns = {name: "TIMESTAMP" if is_time and f"{alias}.{name}" in times else "BIGINT" for name in used}
        listed = ", ".join(f"`{name}` {kind}" for name, kind in sorted(columns.items()))
        (statement,) = parse_statements(f"CREATE STREAM {alias} ({listed})")
        assert isinstance(statement, CreateSource)
        catalog = catalog.with_relation(statement.source)
    left, right = case["inputs"]
    words = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}[case["kind"]]
    query = bind(f"SELECT 1 AS one FROM {left} {words} {right} ON {condition}", catalog)
    aliases = {"0": left, "1": right}
    watermarked = {column for times in case["inputs"].values() for column in times}
    result: dict[str, dict[str, int]] = {column: {} for column in watermarked}
    for (later, earlier), slack in direct_bounds(predicates(query.root)).items():
        one, other = (f"{aliases[i.split('.', 1)[0]]}.{i.split('.', 1)[1]}" for i in (later, earlier))
        if one in watermarked and other in watermarked:
            result[other][one] = slack // (1000 if is_time else 1)
    return result


@pytest.mark.parametrize("case", IN_SQL, ids=[case["id"] for case in IN_SQL])
def test_the_bounds_of_a_condition(case: dict[str, Any]) -> None:
    if case["id"] in NO_EXPRESSION:
        with pytest.raises(PlanningError):
            bounds(plain(case))
        return
    case = plain(case)
    found = bounds(case)
    if case["accept"]:
        tight = {one: {**case["postpone"].get(one, {}), **more} for one, more in case.get("tight", {}).items()}
        assert found in (case["postpone"], {**case["postpone"], **tight})
        return
    bounded = {column for limits in found.values() for column in limits}
    sides = zip(("left", "right"), case["inputs"].values(), strict=True)
    unbounded = [side for side, times in sides if not bounded & set(times)]
    assert unbounded == (["left", "right"] if case["id"] in NO_BOUND else case["unbounded_buffers"])


def test_bounds_follow_from_each_other_over_a_third_input() -> None:
    """Returns within four of a delivery that is within three of its order: returns are within seven of the order."""
    catalog = Catalog()
    for name in "odr":
        (statement,) = parse_statements(f"CREATE STREAM {name} (k INT, t BIGINT)")
        assert isinstance(statement, CreateSource)
        catalog = catalog.with_relation(statement.source)
    query = bind(
        "SELECT o.k FROM o JOIN d ON o.k = d.k AND d.t BETWEEN o.t - 1 AND o.t + 3"
        " JOIN r ON d.k = r.k AND r.t BETWEEN d.t - 1 AND d.t + 4",
        catalog,
    )
    found = all_bounds(normalize(query).block.predicates)
    slacks = {pair: slack_of(steps) for pair, steps in found.items()}
    assert slacks["0.t", "2.t"] == 7 and slacks["2.t", "0.t"] == 2
    assert slacks["0.t", "1.t"] == 3 and slacks["1.t", "2.t"] == 4
