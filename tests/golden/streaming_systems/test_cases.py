"""The cases of the chapter on the Driver, an epoch per record: asked afterwards, and as views that were there first."""

from __future__ import annotations

import re

import pytest

from tests.golden.streaming_systems.book import FOLDER, Case, bag, book_flow, cases, feed, groups, pictures

FILES = (
    "base_tables",
    "unwindowed_full_outer",
    "unwindowed_left_outer",
    "unwindowed_right_outer",
    "unwindowed_inner",
    "unwindowed_anti",
    "unwindowed_semi",
    "windowed_fixed_inputs",
    "windowed_fixed_full_outer",
    "windowed_fixed_left_outer",
    "validity_windows",
    "validity_joins",
    "derived_extras",
)
# A query that says when to emit needs the watermarks of the past: it has to be there as a view.
VIEWS = (*FILES, "watermark_triggers")
SYSTEM = re.compile(r",? *(Sys\.EmitTime|Sys\.Undo|CURRENT_TIMESTAMP) as (Time|Undo)", re.IGNORECASE)


def named(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("case", cases(*FILES), ids=named)
def test_a_query_that_is_asked_afterwards(case: Case, parallelism: int) -> None:
    driver = book_flow(case, parallelism=parallelism)
    feed(driver, case)
    answer = driver.sql(case.sql)
    assert answer.columns == case.columns
    if case.rendering == "TABLE":
        assert bag(row.values() for row in answer) == case.rows()
    elif case.rendering == "STREAM":
        assert groups(answer, "Time", "Undo") == case.changes()
    else:
        assert pictures(answer) == case.snapshots()


@pytest.mark.parametrize("case", cases(*VIEWS), ids=named)
def test_a_view_that_was_there_before(case: Case) -> None:
    driver = book_flow(case)
    query = re.sub(r"^(WITH .*\) )?SELECT (TABLE|STREAM|TVR)", r"\1SELECT", SYSTEM.sub("", case.sql))
    driver.sql(f"CREATE VIEW answer AS {re.sub(' ORDER BY .*', '', query)}")
    feed(driver, case)
    if case.rendering == "TABLE":
        assert bag(row.values() for row in driver.table("answer")) == case.rows()
    elif case.rendering == "STREAM":
        assert groups(driver.stream("answer"), "_emit_time", "_undo") == case.changes()
    else:
        assert pictures(driver.tvr("answer")) == case.snapshots()


def test_no_case_is_left_out() -> None:
    assert {f"{file}.yaml" for file in VIEWS} == {path.name for path in FOLDER.glob("*.yaml")} - {"datasets.yaml"}
    assert len(cases(*VIEWS)) == 80
