"""Watermarks per partition on the engine: explicit or observed, coalesced, idle or not, after restarts."""

from __future__ import annotations

from datetime import datetime
from time import perf_counter
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.errors import (
    DefinitionConflict,
    InputError,
    InvalidSql,
    LimitReached,
    MissingInput,
    MissingRow,
    PlanningError,
    UnknownName,
    Unsupported,
    WatermarkRegress,
)
from rejoinder.ir.splits import RowsSplit, split_batch
from rejoinder.kernels.arrow.columns import PARTITION
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.state.watermarks import Signals
from rejoinder.testing import Driver
from tests.kit import flow

PAST = "CREATE VIEW v AS SELECT id FROM s EMIT WHEN WATERMARK PAST t"


def stream_flow(options: str = "late 'keep'", columns: str = "WATERMARK t", view: str = PAST, **more: Any) -> Driver:
    stream = f"CREATE STREAM s (id INT, t BIGINT, p INT, name STRING, {columns}) OPTIONS ({options})"
    return flow(stream, view, **more)


def released(driver: Driver, column: str = "t") -> int | None:
    return driver._engine.version.watermarks.of("s", column)


def stepped(driver: Driver) -> list[int]:
    """The ids emitted in a step; a crash after it has no effect."""
    ids = [row["id"] for row, _ in driver.step()["v"]]
    driver.restart()
    return ids


def test_the_slowest_declared_partition_decides() -> None:
    driver = stream_flow("partitions '3'")
    driver.insert("s", {"id": 1, "t": 5})
    assert stepped(driver) == []
    for partition, time in ((0, 10), (1, 20)):
        driver.watermark("s", time, partition=partition)
        assert stepped(driver) == [] and released(driver) is None, "partition 2 has said nothing"
    driver.watermark("s", 7, partition=2)
    assert stepped(driver) == [1] and released(driver) == 7
    driver.watermark("s", 30, partition=2)
    stepped(driver)
    assert released(driver) == 10


def test_partitions_that_are_not_declared_count_once_they_have_sent() -> None:
    driver = stream_flow("partition_by 'p'", "WATERMARK t DELAY OF 2")
    driver.insert("s", {"id": 1, "t": 10, "p": 7})
    stepped(driver)
    assert released(driver) == 8, "partition 7 alone is known"
    driver.insert("s", {"id": 2, "t": 4, "p": 5}, {"id": 3, "t": 6, "p": 5}, {"id": 4, "t": 100, "p": 7})
    stepped(driver)
    assert released(driver) == 8, "what was released stays; partition 5 is at 4"
    assert sorted(row["row"] for row in driver.late("v")) == [
        '{"id":2,"t":4,"p":5,"name":null}',
        '{"id":3,"t":6,"p":5,"name":null}',
    ]
    driver.insert("s", {"id": 5, "t": 30, "p": 5})
    stepped(driver)
    assert released(driver) == 28


def test_partitions_are_named_by_number_or_text() -> None:
    driver = stream_flow("partition_by 'name'", "WATERMARK t DELAY OF 0")
    driver.insert("s", {"id": 1, "t": 10, "name": "eu"}, {"id": 2, "t": 3, "name": "us"}, {"id": 3, "t": 99})
    stepped(driver)
    assert released(driver) == 3, "a row without a partition moves none"
    driver.idle("s", "us")
    stepped(driver)
    assert released(driver) == 10
    with pytest.raises(MissingInput, match="no partition 'uk'") as refused:
        driver.idle("s", "uk")
    assert "eu, us" in str(refused.value)


def test_each_column_has_its_own_watermark_and_idle_is_for_all() -> None:
    driver = stream_flow("partition_by 'p', partitions '2'", "u BIGINT, WATERMARK u DELAY OF 1, WATERMARK t DELAY OF 0")
    driver.insert("s", {"id": 1, "t": 10, "u": 100, "p": 0})
    stepped(driver)
    assert released(driver) is released(driver, "u") is None
    driver.idle("s", 1)
    stepped(driver)
    assert (released(driver), released(driver, "u")) == (10, 99)
    driver.insert("s", {"id": 2, "t": None, "u": 200, "p": 1}, {"id": 3, "t": 50, "u": 300, "p": 0})
    stepped(driver)
    assert (released(driver), released(driver, "u")) == (10, 199), "active again, for t too, which it has not sent"


def test_an_explicit_watermark_that_falls_is_named_as_a_time() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (id INT, t TIMESTAMP, WATERMARK t DELAY OF INTERVAL 1 MINUTE)")
    driver.watermark("s", datetime(2024, 1, 1, 10))
    with pytest.raises(WatermarkRegress, match=r"got 2024-01-01 09:00:00 after 2024-01-01 10:00:00"):
        driver.watermark("s", datetime(2024, 1, 1, 9))


def test_an_explicit_watermark_rises_or_is_refused_before_anything_happens() -> None:
    driver = stream_flow("partitions '2'")
    driver.watermark("s", 10, partition=0)
    driver.watermark("s", 12, partition=0)
    driver.watermark("s", 3, partition=1)
    driver.insert("s", {"id": 1, "t": 1})
    for time in (12, 11):
        with pytest.raises(WatermarkRegress, match="does not rise") as refused:
            driver.watermark("s", time, partition=0)
        assert f"partition 0 got {time} after 12" in str(refused.value)
    assert stepped(driver) == [1], "the rows that were there are still there"
    for _ in range(2):
        with pytest.raises(WatermarkRegress):
            driver.watermark("s", 12, partition=0)
        with pytest.raises(WatermarkRegress):
            driver._engine.run_epoch(1, [], signals=Signals(explicit={"s": {1: {"t": 3}}}))
        assert driver.epoch == 0
        driver.restart()
    driver.watermark("s", 13, partition=0)
    driver.watermark("s", 4, partition=1)
    stepped(driver)
    assert released(driver) == 4


def test_watermarks_derived_from_rows_cannot_be_violated() -> None:
    driver = stream_flow(columns="WATERMARK t DELAY OF 5")
    driver.insert("s", {"id": 1, "t": 100})
    stepped(driver)
    driver.watermark("s", 50)
    stepped(driver)
    assert released(driver) == 95, "the higher of both"
    with pytest.raises(WatermarkRegress, match="`t`"):
        driver.watermark("s", 50)
    driver.watermark("s", 120)
    stepped(driver)
    driver.insert("s", {"id": 2, "t": 121})
    stepped(driver)
    assert released(driver) == 120


def test_an_idle_partition_is_left_out_until_it_sends() -> None:
    driver = stream_flow("partition_by 'p', partitions '2'", "WATERMARK t DELAY OF 0")
    driver.insert("s", {"id": 1, "t": 10, "p": 0}, {"id": 2, "t": 3, "p": 1})
    stepped(driver)
    assert released(driver) == 3
    driver.idle("s", 1)
    assert stepped(driver) == [2] and released(driver) == 10, "past 10 means above 10"
    driver.insert("s", {"id": 3, "t": 11, "p": 0})
    assert stepped(driver) == [1]
    driver.insert("s", {"id": 4, "t": 5, "p": 1}, {"id": 5, "t": 20, "p": 0})
    stepped(driver)
    assert released(driver) == 11, "it is back and holds, and nothing goes back"
    assert [row["behind"] for row in driver.late("v")] == [6]
    driver.insert("s", {"id": 6, "t": 15, "p": 1})
    assert stepped(driver) == [3] and released(driver) == 15


def test_the_last_word_of_a_step_counts() -> None:
    driver = stream_flow("partition_by 'p', partitions '2'", "WATERMARK t DELAY OF 0")
    driver.idle("s", 1)
    driver.insert("s", {"id": 1, "t": 10, "p": 0}, {"id": 2, "t": 3, "p": 1})
    stepped(driver)
    assert released(driver) == 3, "rows came after the idle message"
    driver.insert("s", {"id": 3, "t": 4, "p": 1})
    driver.idle("s", 1)
    stepped(driver)
    assert released(driver) == 10, "and before this one"
    driver.idle("s", 1)
    driver.watermark("s", 6, partition=1)
    driver.insert("s", {"id": 4, "t": 20, "p": 0})
    stepped(driver)
    assert released(driver) == 10


def test_all_idle_means_that_the_source_is() -> None:
    driver = stream_flow("partitions '2'")
    driver.watermark("s", 1)
    driver.watermark("s", 2, partition=1)
    driver.idle("s", None)
    stepped(driver)
    assert released(driver) == 1 and driver._engine.version.watermarks.is_idle("s"), (
        "left out together: no partition remains"
    )
    driver.watermark("s", 3)
    stepped(driver)
    assert released(driver) == 3 and not driver._engine.version.watermarks.is_idle("s")


def test_partitions_may_be_named_from_outside() -> None:
    driver = stream_flow(columns="WATERMARK t DELAY OF 0")
    driver._engine.run_epoch(0, [], signals=Signals({"s": {0: {"t": 5}}}, partitions={"s": range(2)}))
    assert released(driver) is None
    driver.restart()
    driver.idle("s", 1)
    stepped(driver)
    assert released(driver) == 5


def test_a_split_may_bring_the_partition_of_its_rows_along() -> None:
    driver = stream_flow(
        columns="WATERMARK t DELAY OF 0", view="CREATE VIEW v AS SELECT * FROM s EMIT WHEN WATERMARK PAST t"
    )
    rows = pa.table({"id": [1, 2, 3], "t": [10, 4, 7], "p": [0, 0, 0], "name": ["x", "y", "z"], PARTITION: [5, 6, 6]})
    rows = rows.cast(driver._engine.version.catalog.sources[0].schema.append(pa.field(PARTITION, pa.int32())))
    driver._engine.run_epoch(0, [split_batch([RowsSplit("s", encode(rows))])])
    shown = [(row["partition"], row["watermark"], row["source_watermark"]) for row in driver.sql("SHOW WATERMARKS")]
    assert shown == [(5, 10, 7), (6, 7, 7)]
    assert driver.table("v") == [{"id": 2, "t": 4, "p": 0, "name": "y"}], "it is not a column of the source"


def test_a_column_that_tells_rows_apart_is_not_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoinder.state.watermarks.MOST_PARTITIONS", 5)
    driver = stream_flow("partition_by 'id'", "WATERMARK t DELAY OF 0")
    driver.insert("s", *({"id": number, "t": 1} for number in range(5)))
    driver.step()
    driver.insert("s", {"id": 5, "t": 2})
    with pytest.raises(LimitReached, match="`s` has 6 partitions, and the limit is 5"):
        driver.step()
    assert driver.epoch == 0


def test_thousands_of_partitions_cost_little() -> None:
    driver = stream_flow("partition_by 'p'", "WATERMARK t DELAY OF 0")
    driver.insert("s", *({"id": 1, "t": number, "p": number} for number in range(3_000)))
    driver.step()
    driver.insert("s", *({"id": 1, "t": 5_000 + number, "p": number} for number in range(3_000)))
    start = perf_counter()
    driver.step()
    assert perf_counter() - start < 20, "linear in their number"
    assert released(driver) == 5_000


def test_options_of_time_belong_to_a_definition() -> None:
    driver = stream_flow("idle_after '1 minute'")
    text = "CREATE STREAM IF NOT EXISTS s (id INT, t BIGINT, p INT, name STRING, WATERMARK t) OPTIONS (idle_after '{}')"
    driver.sql(text.format("60 seconds"))
    driver.insert("s", {"id": 1, "t": 1, "p": 0})
    driver.step()
    with pytest.raises(DefinitionConflict, match="exists with other columns or watermarks"):
        driver.sql(text.format("2 minutes"))


def test_a_source_whose_rows_are_all_filtered_out_goes_on() -> None:
    driver = stream_flow(
        columns="WATERMARK t DELAY OF 0",
        view="CREATE VIEW v AS SELECT id FROM s WHERE id < 0 EMIT WHEN WATERMARK PAST t",
    )
    driver.insert("s", {"id": 1, "t": 10})
    assert stepped(driver) == [] and released(driver) == 10


def test_a_source_that_is_made_anew_starts_anew() -> None:
    driver = stream_flow()
    driver.watermark("s", 10)
    driver.step()
    driver.sql("DROP VIEW v; DROP STREAM s; CREATE STREAM s (id INT, t BIGINT, WATERMARK t)")
    assert released(driver) is None
    driver.watermark("s", 5)
    driver.step()
    assert released(driver) == 5


def test_partitions_that_are_not_there_are_refused() -> None:
    driver = stream_flow("partitions '2'")
    with pytest.raises(MissingInput, match="`s` has no partition 2") as refused:
        driver.idle("s", 2)
    assert "its partitions are 0, 1" in str(refused.value)
    with pytest.raises(MissingInput, match="`s` has no partition 2"):
        driver.watermark("s", 1, partition=2)
    with pytest.raises(MissingInput):
        driver._engine.run_epoch(0, [], signals=Signals(idle={"s": [5]}))
    assert driver.epoch == -1
    undeclared = stream_flow()
    undeclared.idle("s")
    with pytest.raises(MissingInput, match="has no partition 1"):
        undeclared.idle("s", 1)
    by_name = stream_flow("partition_by 'name'", "WATERMARK t DELAY OF 0")
    with pytest.raises(MissingInput, match="none is known before it has sent a row"):
        by_name.idle("s", "x")
    by_name.insert("s", {"id": 1, "t": 1, "name": "x"})
    by_name.step()
    with pytest.raises(MissingInput, match="has no partition 0"):
        by_name.idle("s", 0)
    by_name.idle("s")
    by_name.step()
    assert [(row["partition"], row["idle_since"] is None) for row in by_name.sql("SHOW WATERMARKS")] == [("x", False)]
    undeclared.sql("CREATE STREAM plain (id INT)")
    with pytest.raises(InputError, match="`plain` has no event-time column"):
        undeclared.idle("plain")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ("max_ahead 'soon'", InvalidSql, "max_ahead INTERVAL soon is not a length of time"),
        ("max_ahead INTERVAL 1 HOUR", InvalidSql, "as in max_ahead '1 hour'"),
        ("late 'keep', LATE 'drop'", InvalidSql, "option `late` appears twice"),
        ("partition_by 'q'", UnknownName, "no column `q`"),
        ("partition_by 'w'", InvalidSql, "is of type double"),
        ("partitions '0'", InvalidSql, "`partitions` of `s` is `0`"),
        ("partitions 'many'", InvalidSql, "`partitions` of `s` is `many`"),
        ("partitions '2', partition_by 'name'", InvalidSql, "names them by text"),
        ("partitions '2'", InvalidSql, "no column names that of a row"),
        ("idle_after 'INTERVAL -1 SECOND'", InvalidSql, "it must be positive"),
        ("idle_after '0 seconds'", InvalidSql, "it must be positive"),
        ("idle_after '1 month'", InvalidSql, "months have no fixed length"),
        ("idle_after 'soon'", InvalidSql, "an interval must be a literal"),
        ("max_ahead 'INTERVAL -1 HOUR'", InvalidSql, "not be negative"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: str, error: type[Exception], words: str) -> None:
    columns = "id INT, name STRING, w DOUBLE, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND"
    with pytest.raises(error) as refused:
        Driver().sql(f"CREATE STREAM s ({columns}) OPTIONS ({options})")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ("WATERMARK t DELAY OF INTERVAL -5 SECONDS", "not be negative"),
        ("WATERMARK name DELAY OF 3", "an event-time column is a TIMESTAMP, a DATE or an integer"),
        ("WATERMARK i DELAY OF INTERVAL 1 SECOND", "does not fit column `i`"),
        ("WATERMARK i DELAY OF -5", "an integer column takes a number, 0 or more"),
        ("WATERMARK i DELAY OF 1.5", "an integer column takes a number, 0 or more"),
        ("WATERMARK t DELAY OF 5", "Detail: it is not an interval"),
        ("WATERMARK t DELAY OF INTERVAL 1 MONTH", "Detail: months have no fixed length"),
        ("WATERMARK t DELAY OF INTERVAL 5", "Detail: `INTERVAL '5'` is not an interval that can be read"),
        ("WATERMARK t, WATERMARK T DELAY OF INTERVAL 1 SECOND", "`s` has two watermarks of `T`"),
        (
            "WATERMARK FOR t AS s.t - INTERVAL 5 SECONDS",
            "Hint: write WATERMARK t DELAY OF INTERVAL 5 SECONDS",
        ),
    ],
)
def test_event_times_of_a_wrong_type_or_sign_are_refused(column: str, error: str) -> None:
    with pytest.raises(PlanningError) as refused:
        Driver().sql(f"CREATE STREAM s (t TIMESTAMP, i INT, name STRING, {column})")
    assert error in str(refused.value) and refused.value.hint


def test_options_of_partitions_need_a_watermark() -> None:
    with pytest.raises(InvalidSql, match="is about watermarks, and none is declared"):
        Driver().sql("CREATE STREAM s (id INT) OPTIONS (idle_after '1 minute')")
    with pytest.raises(Unsupported, match="an integer has no fixed unit"):
        Driver().sql("CREATE STREAM s (t INT, WATERMARK t) OPTIONS (max_ahead '1 hour')")


def test_a_time_that_is_too_large_for_one_is_none() -> None:
    driver = stream_flow("late 'KEEP'", "WATERMARK t DELAY OF 0")
    driver.insert("s", {"id": 1, "t": 1}, {"id": 2, "t": 2})
    assert stepped(driver) == [1]
    driver.insert("s", {"id": 3, "t": 2**62}, {"id": 4, "t": 2**63 - 1})
    assert stepped(driver) == []
    assert released(driver) == 2, "it moves no watermark"
    assert [(row["column"], row["behind"]) for row in driver.late("v")] == [("t", None)] * 2


def test_a_row_that_is_taken_back_and_not_there_is_missed_in_its_source() -> None:
    driver = Driver()
    driver.sql(
        "CREATE CHANGELOG c (id INT, t BIGINT, WATERMARK t DELAY OF 0); CREATE STREAM s (id INT, t BIGINT, WATERMARK t)"
    )
    driver.sql("CREATE VIEW v AS SELECT c.id FROM c JOIN s ON c.id = s.id AND s.t BETWEEN c.t AND c.t + 5")
    driver.delete("c", {"id": 1, "t": 1})
    with pytest.raises(MissingRow, match="a deleted row does not exist in `c`"):
        driver.step()
