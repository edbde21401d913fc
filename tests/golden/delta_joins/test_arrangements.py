"""DJ-ARR and DJ-MEM: arrangements are the only state, hold unfiltered rows, and are shared."""

from __future__ import annotations

from collections import Counter
from inspect import isfunction
from typing import Any

from rejoinder.ir.identities import ViewRows
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH
from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.store.runs.run import read_run
from rejoinder.testing import Driver
from tests.golden.delta_joins import test_paths, test_updates
from tests.golden.delta_joins.test_updates import inputs_at
from tests.golden.delta_joins.worked_example import (
    COLUMNS,
    DATA,
    EXAMPLE,
    INPUTS,
    Q1,
    Q2,
    Q3,
    STEPS,
    accumulated,
    content,
    example_flow,
    feed,
    wanted,
)
from tests.golden.named_tests import can_fail

NEEDS: dict[str, Any] = EXAMPLE["arrangements"]


def names(driver: Driver) -> list[str]:
    return sorted(row["name"] for row in driver.sql("SHOW ARRANGEMENTS"))


def size(driver: Driver) -> int:
    return sum(row["bytes"] for row in driver.sql("SHOW ARRANGEMENTS"))


def held(driver: Driver) -> dict[str, Counter[tuple[Any, ...]]]:
    """What each arrangement holds, read from its runs."""
    result = {}
    for name, parts in driver._engine.version.state.arrangements.items():
        bag: Counter[tuple[Any, ...]] = Counter()
        for ref in (ref for part in parts for ref in part.refs):
            for row in read_run(driver._store, ref).to_pylist():
                diff = row.pop(DIFF, 1)
                bag[tuple(value for column, value in row.items() if column != HASH)] += diff
        result[name] = Counter({row: count for row, count in bag.items() if count})
    return result


def test_dj_arr_01_lookups_use_arrangements_keyed_by_their_columns() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    assert names(driver) == NEEDS["q1"]
    keys = {row["name"]: (row["relation"], row["key"]) for row in driver.sql("SHOW ARRANGEMENTS")}
    assert keys == {name: tuple(name.rstrip("]").split("[")) for name in NEEDS["q1"]}


def test_dj_arr_02_six_lookups_share_four_arrangements() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    lookups = [step for step in driver._engine.dataflow.steps() if isinstance(step, Lookup)]
    assert len(lookups) == EXAMPLE["lookups"] == len(INPUTS) * (len(INPUTS) - 1)
    assert len({lookup.arrangement.id for lookup in lookups}) == len(NEEDS["q1"])


def test_dj_arr_03_a_second_query_adds_no_arrangement() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    driver.sql(f"CREATE VIEW q2 AS {Q2}")
    assert NEEDS["q2"]["new"] == [] and names(driver) == NEEDS["q1"] == NEEDS["q2"]["needs"]
    used = {row["name"]: row["used_by"] for row in driver.sql("SHOW ARRANGEMENTS")}
    assert used == {name: ["q1", "q2"] for name in NEEDS["q2"]["shared"]}
    text = driver.sql("EXPLAIN q2")
    assert all(f"{name} (exists, shared with q1)" in text for name in NEEDS["q2"]["shared"])


def test_dj_arr_03_a_third_query_shares_two_arrangements_and_adds_two() -> None:
    inputs = {**COLUMNS, "lineitem": [*COLUMNS["lineitem"], "l_suppkey"], "supplier": ["s_suppkey"]}
    driver = example_flow(inputs=inputs)
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    before = set(names(driver)) - {"supplier[s_suppkey]"}
    driver.sql(f"CREATE VIEW q3 AS {Q3}")
    paths = {
        f"d_{path.start}": [f"{hop.arrangement} = {hop.key}" for hop in path.hops]
        for path in driver._engine.dataflow.paths
        if path.view == ViewRows("q3")
    }
    assert paths == NEEDS["q3"]["paths"]
    assert sorted(set(names(driver)) - before) == NEEDS["q3"]["new"]
    used = {row["name"]: row["used_by"] for row in driver.sql("SHOW ARRANGEMENTS")}
    assert sorted(name for name, users in used.items() if users == ["q1", "q3"]) == NEEDS["q3"]["shared"]


def test_dj_arr_04_arrangements_hold_unfiltered_rows() -> None:
    contents = []
    for query in (Q1, Q2):
        driver = example_flow()
        driver.sql(f"CREATE VIEW q AS {query}")
        for step in STEPS:
            feed(driver, step)
        contents.append(held(driver))
    assert contents[0] == contents[1]
    for name, bag in contents[0].items():
        wanted_rows = inputs_at(STEPS[-1]["time"])[name.split("[")[0]]
        assert bag == Counter({row: count for row, count in wanted_rows.items() if count})


def test_dj_arr_05_a_new_query_starts_with_what_has_accumulated() -> None:
    driver = example_flow(parallelism=2)
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    for step in STEPS[:6]:
        feed(driver, step)
    driver.sql(f"CREATE VIEW q2 AS {Q2}")
    assert content(driver.table("q2")) == accumulated("out_q2", 5) != Counter()
    for step in STEPS[6:]:
        assert feed(driver, step)["q2"] == wanted(step["out_q2"])
        assert content(driver.table("q2")) == accumulated("out_q2", step["time"])
    assert driver.table("q2") == EXAMPLE["final"]["q2"] == []


def test_out_q2_step_by_step() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q2 AS {Q2}")
    for step in STEPS:
        assert feed(driver, step)["q2"] == wanted(step["out_q2"])


def test_dj_mem_01_a_second_query_needs_no_memory_for_its_joins() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    for step in STEPS[:6]:
        feed(driver, step)
    runs, before = driver._engine.version.state.arrangements, size(driver)
    driver.sql(f"CREATE VIEW q2 AS {Q2}")
    assert size(driver) == before > 0
    assert driver._engine.version.state.arrangements == runs


def test_dj_mem_02_a_first_query_on_an_empty_system_makes_exactly_its_arrangements() -> None:
    driver = example_flow()
    assert size(driver) == 0
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    assert names(driver) == NEEDS["q1"]
    for step in STEPS:
        feed(driver, step)
    assert names(driver) == NEEDS["q1"]


def test_dj_mem_03_no_intermediate_result_is_stored() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    for step in STEPS:
        feed(driver, step)
    state = driver._engine.version.state
    assert set(state.changelogs) == {"q1", *(f"{name}.changes" for name in INPUTS)}, "views and inputs"
    for name, parts in state.arrangements.items():
        for ref in (ref for part in parts for ref in part.refs):
            columns = [c for c in read_run(driver._store, ref).column_names if c not in (HASH, DIFF, EPOCH)]
            assert columns == COLUMNS[name.split("[")[0]]


def test_every_requirement_has_a_test() -> None:
    tests = {**vars(test_paths), **vars(test_updates), **globals()}
    names = [name for name, test in tests.items() if isfunction(test) and can_fail(test)]
    prefixes = {r["id"]: f"test_{r['id'].lower().replace('-', '_')}_" for r in DATA["requirements"]}
    untested = [r for r, prefix in prefixes.items() if not any(name.startswith(prefix) for name in names)]
    assert untested == [r["id"] for r in DATA["requirements"] if r["how_to_test"] == "none"]
