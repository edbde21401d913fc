"""Each line of the requirements has a test that names it: a table from id to tests, and those that no trace covers."""

from __future__ import annotations

import itertools
import re
import sys
from inspect import isfunction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import rejoinder as rj
from rejoinder.core import StreamJoin, Watermark
from rejoinder.core.stream_join import Formula
from rejoinder.errors import DefinitionConflict, PlanningError
from rejoinder.plan.physical.steps import Arrange
from rejoinder.testing import Driver
from tests.golden.hazelcast_join import test_bounds, test_core, test_traces_in_sql
from tests.golden.hazelcast_join.core_joins import GOLDEN, condition, feed, play, shown, trace_join
from tests.golden.hazelcast_join.test_bounds import CASES, NO_EXPRESSION, ONLY_CORE, plain
from tests.golden.hazelcast_join.test_core import L_AND_R
from tests.golden.hazelcast_join.test_traces_in_sql import TRACES, Trace
from tests.golden.named_tests import check_named_test

DATA = Path(__file__).parent.parent / "data" / "hazelcast_join" / "requirements.yaml"
REQUIREMENTS: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))["requirements"]
ALL_TRACES = [trace["id"] for trace in TRACES if trace["id"] != test_core.DEFECT]
ACCEPTED = [case["id"] for case in CASES if case["accept"]]
STREAM_JOIN = "tests/unit/core/test_stream_join.py::"
KEPT = "tests/features/expiry/test_rows_kept.py::"
STATE_LIMITS = "tests/features/limits/test_state_quota.py::"
FLAT = "tests/features/expiry/test_flat_state.py::test_a_window_over_a_steady_stream_is_flat_over_200_epochs"
PRODUCTS = "tests/features/joins/test_products.py::"
ORACLE = "tests/oracle/test_time_bounds.py::test_the_end_is_the_batch_join_of_what_was_on_time"

TESTS: dict[str, list[str]] = {
    "HZJ-API-01": ["hz-table1", "tests/unit/sql/statements/test_create_mapping.py::test_the_tables_of_the_document"],
    "HZJ-API-02": ["tests/unit/core/test_core.py::test_it_loads_neither_sql_nor_spark", *ALL_TRACES],
    "HZJ-API-03": ALL_TRACES,
    "HZJ-API-04": ["hz-table1", "test_the_python_join_is_the_sql_join"],
    "HZJ-API-05": ["hz-d-inner-expiry-silent", "hz-d-left-pad-on-expiry", "hz-d-right-pad-on-expiry"],
    "HZJ-API-06": ["hz-d-full-pad-both", ORACLE],
    "HZJ-API-07": [
        "b-no-watermark-right",
        "tests/unit/sql/bind/relations/test_table_functions.py::test_an_imposed_order_is_the_watermark_of_who_reads_it",
        "test_an_input_without_a_watermark_is_refused_where_a_bound_is_needed",
    ],
    "HZJ-API-08": ["test_a_join_with_a_table_needs_no_bounds"],
    "HZJ-BND-01": ["test_a_join_without_bounds_is_refused_before_it_runs"],
    "HZJ-BND-02": ACCEPTED,
    "HZJ-BND-03": [
        "b-doc-multiple-lowest",
        "b-lowest-mixed-forms",
        "b-lowest-equality-wins",
        "b-lowest-negative",
    ],
    "HZJ-BND-04": ["b-doc-unconvertible-part-ignored", "hz-d-equi-key-many-matches"],
    "HZJ-BND-05": ["b-doc-or", "b-or-mixed", "test_a_join_without_bounds_is_refused_before_it_runs"],
    "HZJ-BND-06": ["b-doc-nonconstant", "b-nonconstant-both", "test_a_join_without_bounds_is_refused_before_it_runs"],
    "HZJ-BND-07": ["b-doc-3way-join2"],
    "HZJ-BND-08": [
        "b-multi-same-input-ignored",
        "hz-d-same-input-bound-not-used",
        STREAM_JOIN + "test_what_cannot_be_joined_is_refused",
    ],
    "HZJ-BND-09": ["hz-3way-join2", "hz-d-3way-pipeline"],
    "HZJ-PRC-01": ALL_TRACES,
    "HZJ-PRC-02": ["hz-3way-join2", "hz-d-two-bounds-max"],
    "HZJ-PRC-03": ["hz-d-two-bounds-max", "hz-two-input-expiry"],
    "HZJ-PRC-04": ["hz-d-left-pad-on-expiry", "hz-d-right-pad-on-expiry", "hz-d-full-pad-both"],
    "HZJ-PRC-05": ["hz-d-left-pad-on-expiry"],
    "HZJ-PRC-06": ["hz-d-watermark-dedup", STREAM_JOIN + "test_the_sum_is_the_relational_join"],
    "HZJ-PRC-07": ["hz-3way-join2"],
    "HZJ-PRC-08": ["hz-3way-join2"],
    "HZJ-PRC-09": [
        "hz-d-late-drop",
        "hz-d-late-any-key",
        KEPT + "test_late_rows_are_neither_joined_nor_kept",
    ],
    "HZJ-PRC-10": ["hz-d-late-drop", "tests/features/expiry/test_bounded_joins.py::test_late_means_strictly_below"],
    "HZJ-PRC-11": [
        "hz-example1",
        "hz-example2",
        "hz-d-out-of-bounds-left",
        "hz-d-out-of-bounds-inner",
        KEPT + "test_rows_outside_the_bounds_are_joined_and_not_kept",
        KEPT + "test_rows_outside_the_bounds_meet_rows_of_their_own_epoch",
    ],
    "HZJ-PRC-12": [
        "hz-single-input-left-eager",
        "hz-d-single-input-inner",
        "hz-d-single-input-nonpreserved-side",
        KEPT + "test_rows_that_their_own_condition_rules_out_are_not_kept",
        "test_conditions_of_one_input_are_known_at_once",
    ],
    "HZJ-PRC-13": [
        "b-no-watermark-right",
        "b-same-wm-key-both-inputs",
        STREAM_JOIN + "test_what_cannot_be_joined_is_refused",
    ],
    "HZJ-PRC-14": [STREAM_JOIN + "test_the_sum_is_the_relational_join", *ALL_TRACES, ORACLE],
    "HZJ-PRC-15": [
        *("hz-rule1-a", "hz-rule1-a99", "hz-rule1-b", "hz-rule1-b2"),
        STREAM_JOIN + "test_the_sum_is_the_relational_join",
        ORACLE,
    ],
    "HZJ-PRC-16": ["hz-rule2-a", "hz-rule2-c", "hz-rule2-d", "hz-rule2-e"],
    "HZJ-PRC-17": [STREAM_JOIN + "test_the_sum_is_the_relational_join", ORACLE],
    "HZJ-MEM-01": [
        "hz-d-accumulation-cap",
        "hz-d-accumulation-cap-freed",
        STATE_LIMITS + "test_an_epoch_that_would_keep_too_many_rows_fails_before_its_commit",
    ],
    "HZJ-MEM-02": [STREAM_JOIN + "test_state_stays_small_under_advancing_watermarks", FLAT],
    "HZJ-MEM-03": [
        STREAM_JOIN + "test_a_stalled_side_grows_until_the_cap",
        STATE_LIMITS + "test_one_side_that_stalls_lets_the_other_grow_up_to_the_limit",
    ],
    "HZJ-FT-01": ["hz-d-ft-unused-flag"],
    "HZJ-FT-02": ["hz-d-ft-unused-flag", "hz-d-ft-no-resurrection"],
    "HZJ-FT-03": ["hz-ft-left-fixed", "test_the_defect_of_the_document_does_not_happen"],
    "HZJ-FT-04": ["hz-sn-equi-partitioned", ORACLE],
    "HZJ-FT-05": [
        "hz-sn-broadcast-unicast",
        PRODUCTS + "test_state_and_pairs_are_spread_over_the_buckets",
    ],
    "HZJ-FT-06": ["hz-sn-broadcast-unicast", PRODUCTS + "test_state_and_pairs_are_spread_over_the_buckets"],
    "HZJ-FT-07": ["hz-sn-wm-equal-across-processors", *ALL_TRACES],
    "HZJ-FT-08": ["hz-sn-restore-minimum"],
    "HZJ-FT-09": ["hz-3way-join2", STREAM_JOIN + "test_the_sum_is_the_relational_join"],
    "HZJ-FT-10": ["hz-ft-left-fixed", "test_watermarks_may_start_lower_after_a_restart"],
    "HZJ-FT-11": ["hz-sn-wm-equal-across-processors"],
    "HZJ-FT-12": ["hz-sn-restore-minimum"],
    "HZJ-FT-13": ["test_with_a_row_at_every_instant_both_rules_give_equal_watermarks"],
    "HZJ-FT-14": ["test_a_snapshot_has_one_watermark_per_key_of_the_join"],
    "HZJ-FT-15": [
        "hz-sn-broadcast-unicast",
        PRODUCTS + "test_rows_of_a_time_bounded_join_without_a_key_expire_in_every_bucket",
    ],
    "HZJ-TST-01": ALL_TRACES,
    "HZJ-TST-02": [
        *("hz-table1", "hz-example2", "hz-d-left-pad-on-expiry"),
        "tests/spark/test_kafka_restarts.py::test_killed_broker_and_driver",
    ],
    "HZJ-TST-03": ["benchmarks/soak.py::main", ORACLE],
    "HZJ-TST-04": ["test_a_pair_is_emitted_with_its_second_row"],
}
# What is said of snapshots of instances, and of the rule for watermarks that goes with them, is said of the operator:
# a flow has one manifest, with one value of each watermark.
SQL = {"Driver", "Trace"}
OF_THE_OPERATOR = {"HZJ-FT-08", "HZJ-FT-11", "HZJ-FT-12", "HZJ-FT-13", "HZJ-FT-14"}
PLAYED = [case["id"] for kind in ("traces", "checks", "pipelines", "snapshot_cases") for case in GOLDEN[kind]]
PLAYED += [case["id"] for case in CASES]


def test_every_requirement_has_tests_that_are_there() -> None:
    assert list(TESTS) == [each["id"] for each in REQUIREMENTS]
    here = [test_core, test_bounds, test_traces_in_sql, sys.modules[__name__]]
    for requirement, tests in TESTS.items():
        assert tests, requirement
        for name in tests:
            check_named_test(requirement, name, here)
    for each in REQUIREMENTS:  # what the data names is what is run
        for name in PLAYED:
            if name in re.split(r"[\s,;:()]+", each["how_to_test"]):
                assert name in TESTS[each["id"]] or name == test_core.DEFECT, f"{each['id']} names {name}"


def test_every_requirement_is_tested_in_sql_too() -> None:
    cases = (*GOLDEN["traces"], *GOLDEN["checks"], *GOLDEN["pipelines"], *CASES)
    in_sql = {case["id"] for case in cases} | {*vars(test_traces_in_sql)}
    in_sql |= {name for name, test in globals().items() if isfunction(test) and SQL & {*test.__code__.co_names}}
    for requirement, tests in TESTS.items():
        found = [name for name in tests if name in in_sql or ("::" in name and not name.startswith(STREAM_JOIN))]
        assert bool(found) == (requirement not in OF_THE_OPERATOR), requirement


def sources(driver: Driver, case: dict[str, Any], *, marked: bool = True) -> str:
    """The streams of a case of bounds, and the FROM of its join."""
    is_time = "INTERVAL" in case["on"].upper()
    for alias, times in case["inputs"].items():
        used = set(re.findall(rf"\b{alias}\.(\w+)", case["on"])) | {t.split(".")[1] for t in times} or {"x"}
        columns = [
            f"`{name}` {'TIMESTAMP' if is_time and f'{alias}.{name}' in times else 'BIGINT'}" for name in sorted(used)
        ]
        marks = [f"WATERMARK `{time.split('.')[1]}`" for time in times if marked]
        driver.sql(f"CREATE STREAM {alias} ({', '.join([*columns, *marks])})")
    left, right = case["inputs"]
    words = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}[case["kind"]]
    return f"{left} {words} {right} ON {case['on']}"


@pytest.mark.parametrize("case", [c for c in CASES if c["id"] not in ONLY_CORE], ids=lambda case: case["id"])
def test_a_join_without_bounds_is_refused_before_it_runs(case: dict[str, Any]) -> None:
    """HZJ-BND-01, HZJ-BND-05, HZJ-BND-06: where a bound is needed; the error says which condition would give it."""
    driver = Driver()
    joined = sources(driver, plain(case))
    query = f"CREATE VIEW v AS SELECT 1 AS one FROM {joined} EMIT FINAL"
    if case["accept"] and case["id"] not in NO_EXPRESSION:
        driver.sql(query)
        return
    with pytest.raises(PlanningError) as raised:
        driver.sql(query)
    assert raised.value.hint
    if case["id"] not in NO_EXPRESSION:
        either = "|".join(case["inputs"])
        condition = rf"add a condition such as ({either})\.\w+ (<=|BETWEEN) ({either})\.\w+"
        assert re.search(f"{condition}|add WATERMARK .* to the columns of `({either})`", raised.value.hint)


def test_an_input_without_a_watermark_is_refused_where_a_bound_is_needed() -> None:
    """HZJ-API-07."""
    (case,) = [case for case in CASES if case["id"] == "b-kind-left"]
    driver = Driver()
    joined = sources(driver, case, marked=False)
    with pytest.raises(PlanningError, match="EMIT FINAL needs a bound in time for each side") as raised:
        driver.sql(f"CREATE VIEW v AS SELECT l.time FROM {joined} EMIT FINAL")
    assert "declare WATERMARK on a time of each side" in str(raised.value.hint)


def test_a_key_on_both_inputs_is_refused() -> None:
    """HZJ-PRC-13: in the core, as columns of different inputs are different in SQL."""
    case = {case["id"]: case for case in CASES}["b-same-wm-key-both-inputs"]
    assert case["reject_reason"] == "duplicate_watermark_key"
    given = {**L_AND_R, "kind": case["kind"], "condition": case["on"], "postpone_time_map": {0: {1: 0}, 1: {0: 0}}}
    inputs = [{**each, "wm": [{**mark, "key": 0} for mark in each["wm"]]} for each in L_AND_R["inputs"]]
    StreamJoin(condition(given, [], on=False))
    with pytest.raises(DefinitionConflict, match="the same watermark key"):
        StreamJoin(condition({**given, "inputs": inputs}, [], on=False))


def test_a_join_with_a_table_needs_no_bounds() -> None:
    """HZJ-API-08: retained rows of stream and table never expire, and no row is late."""
    driver = Driver()
    driver.sql("CREATE STREAM o (id BIGINT, t BIGINT, WATERMARK t); CREATE TABLE c (id BIGINT, PRIMARY KEY (id))")
    driver.sql("CREATE VIEW v AS SELECT o.id FROM o JOIN c ON o.id = c.id")
    steps = [step for step in driver._engine.dataflow.steps() if isinstance(step, Arrange)]
    assert {str(step.arrangement.relation) for step in steps} == {"o", "c"}
    assert all(step.retention is None for step in steps)
    driver.watermark("o", 100)
    driver.step()
    driver.insert("o", {"id": 1, "t": 5})
    driver.insert("c", {"id": 1})
    assert driver.step()["v"] == [({"id": 1}, 1)]


def test_the_python_join_is_the_sql_join() -> None:
    """HZJ-API-04: the document's orders and deliveries, with a key."""
    driver = Driver(parallelism=2)
    driver.sql(
        "CREATE STREAM orders (order_id BIGINT, order_time TIMESTAMP, WATERMARK order_time);"
        "CREATE STREAM deliveries (order_id BIGINT, delivery_time TIMESTAMP, address STRING, WATERMARK delivery_time);"
        "CREATE VIEW in_sql AS SELECT o.order_id, o.order_time, d.delivery_time, d.address"
        " FROM orders o JOIN deliveries d"
        " ON o.order_id = d.order_id AND d.delivery_time BETWEEN o.order_time AND o.order_time + INTERVAL '1' HOUR"
    )
    orders, deliveries = (rj.Stream.of(driver, name) for name in ("orders", "deliveries"))
    joined = orders.join(deliveries, on="order_id", within=("0 seconds", "1 hour"))
    driver.sql(f"CREATE VIEW in_python AS {joined.query}")
    (case,) = [trace for trace in TRACES if trace["id"] == "hz-table1"]
    for step in case["steps"]:
        given = step["in"]
        if "item" in given:
            row = {column.split(".")[1]: value for column, value in given["item"].items()}
            name = ("orders", "deliveries")[given["ordinal"]]
            known = driver._engine.version.catalog.get(name).schema.names
            driver.insert(name, {column: value for column, value in row.items() if column in known})
            driver.step()
    rows = [sorted(map(str, (row.values() for row in driver.table(view)))) for view in ("in_sql", "in_python")]
    assert rows[0] == rows[1] and len(rows[0]) == 2
    kept = [row for row in driver.arrangements() if set(row["used_by"]) & {"in_sql", "in_python"}]
    assert kept and all(set(row["used_by"]) == {"in_sql", "in_python"} for row in kept), "both use the same state"


@pytest.mark.parametrize("postpone", [(0, 0), (2, 3)])
def test_with_a_row_at_every_instant_both_rules_give_equal_watermarks(postpone: tuple[int, int]) -> None:
    """HZJ-FT-13: after one postpone window."""
    back, ahead = postpone
    given = {
        **L_AND_R,
        "kind": "INNER",
        "condition": f"l.time BETWEEN r.time - {back} AND r.time + {ahead}",
        "postpone_time_map": {0: {1: ahead}, 1: {0: back}},
    }
    outs: dict[Formula, list[Any]] = {}
    formulas: tuple[Formula, Formula] = ("min_buffer", "wm_state")
    for formula in formulas:
        join = StreamJoin(condition(given, [], on=False), formula=formula)
        outs[formula] = []
        for time, ordinal in itertools.product(range(40), (0, 1)):
            feed(join, ordinal, {f"{'lr'[ordinal]}.id": "x", f"{'lr'[ordinal]}.time": time})
            marks = join.watermark(ordinal, ordinal, time)
            if time > 2 * (back + ahead) + 1:
                outs[formula].append([(m.key, m.time) for m in marks if isinstance(m, Watermark)])
    assert outs["min_buffer"] == outs["wm_state"] and any(outs["wm_state"])


def test_a_snapshot_has_one_watermark_per_key_of_the_join() -> None:
    """HZJ-FT-14: none for each key of a row, which the document rejects."""
    (case,) = [trace for trace in TRACES if trace["id"] == "hz-d-equi-key-many-matches"]
    join = trace_join(case, "wm_state", on=True)
    for step in case["steps"]:
        play(join, step["in"])
    snapshot = join.snapshot()
    tables = [table for table in snapshot["rows"] if table is not None]
    assert tables and all(isinstance(table, pa.Table) for table in tables)
    watermarked = {mark["column"] for given in case["join"]["inputs"] for mark in given["wm"]}
    for table in tables:
        assert not [name for name in table.column_names if "emitted" in name or "watermark" in name]
    assert len(join.received()) <= len(watermarked)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_pair_is_emitted_with_its_second_row(parallelism: int) -> None:
    """HZJ-TST-04: in its own epoch, without a watermark; of the operator, in the same call."""
    (case,) = [trace for trace in TRACES if trace["id"] == "hz-example1"]
    first, second = (step["in"] for step in case["steps"][:2])
    played = Trace(case, parallelism)
    assert not played.play(first) and sum(played.play(second).values()) == 1
    join = trace_join(case, "min_buffer")
    assert shown(play(join, first)) == [] and len(shown(play(join, second))) == 1
