"""A third of the chapter's cases, and more, on Spark with one record per micro-batch: as views, and asked afterwards.

All cases over the same inputs are views of one flow. On Spark the emit time is the clock's, so an epoch stands for the
time of the record that made it.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rejoinder.formats.text.plain_rows import Rows, plain_rows
from tests.deep import DEEP
from tests.golden.streaming_systems.book import FOLDER, Case, bag, cases, definition, epochs, groups, moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import rejoinder as rj

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ALL = {case.id: case for case in cases(*(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "datasets"))}
CHOSEN = {
    "Left and Right": [
        *("base_left", "full_table", "full_tvr", "full_stream", "left_table", "left_stream", "right_stream"),
        *("inner_table", "inner_stream", "anti_table", "anti_stream", "tumble_right", "wfull_table", "wfull_stream"),
        *("wleft_table", "x_wright_stream", "x_winner_stream", "x_wanti_stream", "x_wsemi_stream", "x_cross_stream"),
    ],
    "a change": ["inner_v2_table", "inner_v2_stream"],
    "N : M": [
        *("full_nm_table", "full_nm_stream", "semi_nm_table", "semi_nm_stream", "inner_nm_stream"),
        *("x_left_nm_stream", "x_anti_nm_stream"),
    ],
    "rates and orders": [
        *("validity_table", "validity_stream", "validity_self_join", "validity_tvr", "vjoin_full_table"),
        *("vjoin_full_tvr", "vjoin_full_stream", "vjoin_inner_stream", "x_vjoin_inner_with_window_stream"),
    ],
}
ASKED = {"Left and Right": ["wfull_stream", "full_tvr"], "rates and orders": ["vjoin_full_stream", "validity_tvr"]}
SYSTEM = re.compile(r",? *(Sys\.EmitTime|Sys\.Undo|CURRENT_TIMESTAMP) as (Time|Undo)", re.IGNORECASE)


def view_of(case: Case) -> str:
    query = re.sub(r"^(WITH .*\) )?SELECT (TABLE|STREAM|TVR)", r"\1SELECT", SYSTEM.sub("", case.sql))
    return f"CREATE VIEW `{case.id}` AS {re.sub(' ORDER BY .*', '', query)}"


def fed(flow: rj.Flow, chosen: list[Case]) -> list[datetime]:
    """Make the inputs and a view for each case, play one record after the other, and give the time of each epoch."""
    inputs = sorted({name for case in chosen for name in case.inputs})
    for name in inputs:
        flow.sql(definition(name))
    for name, query in {name: query for case in chosen for name, query in case.views.items()}.items():
        flow.sql(f"CREATE VIEW {name} AS {query}")
    for case in chosen:
        flow.sql(view_of(case))
    played = epochs(inputs, moment("23:59"))
    for number, (_, changes) in enumerate(played):
        for name, row, diff in changes:
            (flow.insert if diff > 0 else flow.delete)(name, [row])
        flow.run()
        assert flow.epoch == number, "one epoch for one record"
    assert all(when <= case.until for when, _ in played for case in chosen)
    return [when for when, _ in played]


def timed(table: pa.Table, times: list[datetime]) -> Rows:
    """The rows of a STREAM, each with the time of its epoch; a row for every copy."""
    rows = [
        {**row, "_emit_time": times[row["_epoch"]]}
        for row in plain_rows(table, is_ordered=True)
        for _ in range(abs(row["_diff"]))
    ]
    columns = [name for name in table.column_names if name != "_diff"]
    return Rows(({name: row[name] for name in columns} for row in rows), columns)


@pytest.mark.parametrize(
    "inputs", [pytest.param(inputs, marks=DEEP if inputs == "Left and Right" else ()) for inputs in CHOSEN]
)
def test_cases_on_spark(inputs: str, spark: SparkSession, tmp_path: Path) -> None:
    import rejoinder as rj

    chosen = [ALL[name] for name in CHOSEN[inputs]]
    flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2)
    times = fed(flow, chosen)
    for case in chosen:
        if case.rendering == "TABLE":
            assert bag(row.values() for row in plain_rows(flow.table(case.id).toArrow())) == case.rows(), case.id
        elif case.rendering == "STREAM":
            stream = flow.sql(f"SELECT STREAM * FROM `{case.id}`").toArrow()
            assert groups(timed(stream, times), "_emit_time", "_undo") == case.changes(), case.id
        else:
            shown = [(times[one.epoch] if one.epoch >= 0 else None, one.rows) for one in flow.tvr(case.id)]
            wanted = [(since, rows) for since, _, rows in case.snapshots()]
            assert [(since, bag(row.values() for row in rows)) for since, rows in shown] == wanted, case.id
    for case in (ALL[name] for name in ASKED.get(inputs, [])):
        answer = flow.sql(case.sql)
        if case.rendering == "STREAM":
            rows = plain_rows(answer.toArrow(), is_ordered=True)
            assert rows.columns == case.columns
            told = dict(zip(emitted(flow), times, strict=True))
            renamed = Rows(({**row, "Time": told[row["Time"]]} for row in rows), rows.columns)
            assert groups(renamed, "Time", "Undo") == case.changes(), case.id
        else:
            assert [bag(row.values() for row in one.rows) for one in answer] == [rows for *_, rows in case.snapshots()]
            assert str(answer).startswith("from the beginning to ")


def emitted(flow: rj.Flow) -> list[datetime]:
    """The commit times of all epochs: each has a record of one of the sources."""
    times = {}
    for source in flow.engine.version.catalog.sources:
        for row in plain_rows(flow.sql(f"SELECT STREAM * FROM `{source.name}`").toArrow(), is_ordered=True):
            times[row["_epoch"]] = row["_emit_time"]
    return [times[epoch] for epoch in sorted(times)]


def test_it_is_a_third_of_the_cases() -> None:
    assert sum(map(len, CHOSEN.values())) >= len(ALL) / 3
