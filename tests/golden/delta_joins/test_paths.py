"""DJ-PTH and DJ-TIE: one path per input, in its own order, ties broken by the order of the inputs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rejoinder.plan.physical.dataflow import Dataflow, Path
from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.plan.physical.steps import Emit
from rejoinder.runtime.steps.step_registry import STEP_FUNCTIONS
from rejoinder.runtime.task import Task
from rejoinder.testing import Driver
from tests.golden.delta_joins.worked_example import (
    EXAMPLE,
    INPUTS,
    Q1,
    Q2,
    STEPS,
    Bag,
    example_flow,
    feed,
    signed,
    wanted,
)

TIED = [step for step in STEPS if "wrong_if_ties_le" in step]


def installed(query: str = Q1) -> Driver:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {query}")
    return driver


def dataflow(driver: Driver) -> Dataflow:
    return driver._engine.dataflow


def shown(path: Path) -> list[str]:
    return [f"{hop.arrangement} = {hop.key}" for hop in path.hops]


@pytest.fixture
def by_path(monkeypatch: pytest.MonkeyPatch) -> dict[str, Bag]:
    """What each path brings to the view, by the input that it starts with; filled while an epoch runs."""
    brought: dict[str, Bag] = {}
    emit: Callable[[Task, Any], None] = STEP_FUNCTIONS[Emit]

    def spying(task: Task, step: Emit) -> None:
        stream = task.streams.get(step.input)
        if stream is not None and not step.view.endswith(".changes"):
            start = step.input.removeprefix(f"{step.view}/").split("~")[0]
            changes = [
                ({k: v for k, v in row.items() if k != "__diff"}, row.get("__diff", 1)) for row in stream.to_pylist()
            ]
            bag = brought.setdefault(start, Counter())
            for change in changes:
                bag.update(signed([change]))
        emit(task, step)

    monkeypatch.setitem(STEP_FUNCTIONS, Emit, spying)
    return brought


def netted(brought: dict[str, Bag]) -> dict[str, Bag]:
    net = {start: Counter({row: diff for row, diff in bag.items() if diff}) for start, bag in brought.items()}
    return {start: bag for start, bag in net.items() if bag}


def test_dj_pth_01_one_path_per_input_and_their_outputs_are_merged(by_path: dict[str, Bag]) -> None:
    driver = installed()
    assert [str(path.start) for path in dataflow(driver).paths] == INPUTS
    for step in STEPS:
        by_path.clear()
        out = feed(driver, step)["q1"]
        brought = netted(by_path)
        assert brought == {start: wanted(triples) for start, triples in step["out_by_path"].items()}
        total: Bag = Counter()
        for bag in brought.values():
            for row, diff in bag.items():
                total[row] += diff
        assert out == Counter({row: diff for row, diff in total.items() if diff})


def test_dj_pth_02_the_paths_of_the_three_way_example() -> None:
    paths = {f"d_{path.start}": shown(path) for path in dataflow(installed()).paths}
    assert paths == EXAMPLE["paths"]


def test_dj_pth_03_a_path_goes_on_only_along_a_constraint() -> None:
    for path in dataflow(installed()).paths:
        met = [str(path.start), *(str(hop.relation) for hop in path.hops)]
        for at, pair in enumerate(itertools.pairwise(met)):
            assert set(pair) != {"customer", "lineitem"} or "orders" in met[:at]
        assert all(hop.key for hop in path.hops)


def test_dj_pth_04_paths_differ_in_their_order() -> None:
    orders = {tuple(hop.relation for hop in path.hops) for path in dataflow(installed()).paths}
    assert len(orders) == 3


def test_dj_pth_05_diffs_are_multiplied_and_take_the_time_of_the_update() -> None:
    driver = installed()
    outs = {step["time"]: feed(driver, step)["q1"] for step in STEPS}
    assert outs[3] == wanted(STEPS[3]["out"]) and list(outs[3].values()) == [2]
    assert outs[9] == wanted(STEPS[9]["out"]) and list(outs[9].values()) == [6]


@pytest.mark.parametrize("query", [Q1, Q2], ids=["q1", "q2"])
def test_dj_pth_06_filters_may_stand_before_or_after_the_lookups(query: str) -> None:
    source, condition = query.split("WHERE")
    conjuncts = [part.strip() for part in condition.split("AND")]
    joins = [part for part in conjuncts if "custkey = " in part or "orderkey = " in part]
    filters = [part for part in conjuncts if part not in joins]
    inner = f"SELECT * FROM customer, orders, lineitem WHERE {' AND '.join(joins)}"
    early = source
    for name, prefix in (("customer", "c_"), ("orders", "o_"), ("lineitem", "l_")):
        own = [part for part in filters if part.startswith(prefix)]
        early = early.replace(name, f"(SELECT * FROM {name}{' WHERE ' if own else ''}{' AND '.join(own)}) {name}")
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {query}")
    driver.sql(f"CREATE VIEW late AS SELECT * FROM ({inner}) q WHERE {' AND '.join(filters)}")
    driver.sql(f"CREATE VIEW early AS {early} WHERE {' AND '.join(joins)}")
    for step in STEPS:
        outs = feed(driver, step)
        assert outs["q1"] == outs["late"] == outs["early"]


def mistied(driver: Driver, *, after: bool) -> None:
    """Make every lookup of the flow see (or not see) the changes of the epoch that is run."""
    engine = driver._engine
    plan = engine.version.plan
    rounds = tuple(
        tuple(replace(step, after=after) if isinstance(step, Lookup) else step for step in steps)
        for steps in plan.dataflow.rounds
    )
    plan = replace(plan, dataflow=replace(plan.dataflow, rounds=rounds))
    engine.version = replace(engine.version, plan=plan)


@pytest.mark.parametrize("step", TIED, ids=lambda step: f"time {step['time']}")
def test_dj_tie_01_seeing_equal_times_on_all_paths_counts_pairs_more_than_once(step: dict[str, Any]) -> None:
    driver = installed()
    for earlier in STEPS[: step["time"]]:
        feed(driver, earlier)
    mistied(driver, after=True)
    assert feed(driver, step)["q1"] == wanted(step["wrong_if_ties_le"])


@pytest.mark.parametrize("step", TIED, ids=lambda step: f"time {step['time']}")
def test_dj_tie_02_seeing_equal_times_on_no_path_misses_pairs(step: dict[str, Any]) -> None:
    driver = installed()
    for earlier in STEPS[: step["time"]]:
        feed(driver, earlier)
    mistied(driver, after=False)
    assert feed(driver, step)["q1"] == wanted(step["wrong_if_ties_lt"])


@pytest.mark.parametrize("order", list(itertools.permutations(INPUTS)), ids="-".join)
def test_dj_tie_03_any_order_of_the_inputs_gives_the_same_output(order: tuple[str, ...]) -> None:
    listed = ",\n    ".join(INPUTS)
    assert listed in Q1
    driver = installed(Q1.replace(listed, ", ".join(order)))
    for path in dataflow(driver).paths:
        for hop in path.hops:
            assert hop.after == (order.index(str(hop.relation)) < order.index(str(path.start)))
    for step in STEPS:
        assert feed(driver, step)["q1"] == wanted(step["out"])


@pytest.mark.parametrize("time", [5, 7])
def test_dj_tie_04_updates_of_one_input_at_one_time_do_not_see_each_other(time: int, by_path: dict[str, Bag]) -> None:
    driver = installed()
    for step in STEPS[:time]:
        feed(driver, step)
    by_path.clear()
    assert len({update["input"] for update in STEPS[time]["in"]}) == 1
    assert feed(driver, STEPS[time])["q1"] == wanted(STEPS[time]["out"])
    assert set(netted(by_path)) == set(STEPS[time]["out_by_path"])
