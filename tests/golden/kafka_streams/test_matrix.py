"""The matrix itself: what exists on each type, what it gives, what is refused and why; and that SQL says the same."""

from __future__ import annotations

from typing import Any

import pytest

import rejoinder as rj
from rejoinder.errors import RejoinderError, TypeMismatch, Unsupported
from rejoinder.testing import Driver
from tests.golden.kafka_streams.cells import DATA, DAY, Side

CELLS: list[dict[str, Any]] = DATA["matrix"]
TYPES: dict[str, type[Side]] = {"KStream": rj.Stream, "KTable": rj.Table, "WTable": rj.WindowedTable}
METHODS = {"inner": "join", "left": "left_join", "outer": "outer_join", "right": "right_join"}
COUNTED = "SELECT k, TUMBLE(ts, INTERVAL 1 day) AS window, sum(v) AS v FROM {0} GROUP BY k, TUMBLE(ts, INTERVAL 1 day)"
NOW = "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
NEAR = "l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 10 seconds AND l.ts + INTERVAL 20 seconds"
SQL = {
    ("KStream", "KStream", "inner"): f"SELECT l.k, l.v, r.v AS u FROM ls l JOIN rs r ON {NEAR}",
    ("KStream", "KStream", "left"): f"SELECT l.k, l.v, r.v AS u FROM ls l LEFT JOIN rs {NOW} AS r ON {NEAR}",
    (
        "KStream",
        "KStream",
        "outer",
    ): f"SELECT coalesce(l.k, r.k) AS k, l.v, r.v AS u FROM ls l FULL JOIN rs {NOW} AS r ON {NEAR}",
    ("KStream", "KTable", "left"): f"SELECT l.k, l.v, r.v AS u FROM ls l LEFT JOIN rt {NOW} AS r ON l.k = r.k",
    ("KStream", "WTable", "left"): f"WITH rw AS ({COUNTED.format('rs')}) SELECT l.k, l.v, r.v AS u FROM ls l "
    f"LEFT JOIN rw {NOW} AS r ON l.k = r.k AND date_trunc('DAY', l.ts) = WINDOW_START(r.window)",
    ("KTable", "KTable", "inner"): "SELECT l.k, l.v, r.v AS u FROM lt l JOIN rt r ON l.k = r.k",
    ("KTable", "KTable", "left"): "SELECT l.k, l.v, r.v AS u FROM lt l LEFT JOIN rt r ON l.k = r.k",
    ("KTable", "KTable", "outer"): "SELECT coalesce(l.k, r.k) AS k, l.v, r.v AS u FROM lt l FULL JOIN rt r "
    "ON l.k = r.k",
    ("KTable", "WTable", "left"): f"SELECT l.k, l.v, r.v AS u FROM lt l LEFT JOIN ({COUNTED.format('rs')}) r "
    "ON l.k = r.k AND date_trunc('DAY', l.ts) = WINDOW_START(r.window)",
    ("WTable", "KTable", "left"): f"SELECT l.k, l.window, l.v, r.v AS u FROM ({COUNTED.format('ls')}) l "
    "LEFT JOIN rt r ON l.k = r.k",
    ("WTable", "WTable", "inner"): f"SELECT l.k, l.window, l.v, r.v AS u FROM ({COUNTED.format('ls')}) l "
    f"JOIN ({COUNTED.format('rs')}) r ON l.k = r.k AND l.window = r.window",
    ("WTable", "WTable", "left"): f"SELECT l.k, l.window, l.v, r.v AS u FROM ({COUNTED.format('ls')}) l "
    f"LEFT JOIN ({COUNTED.format('rs')}) r ON l.k = r.k AND l.window = r.window",
    ("WTable", "WTable", "outer"): "SELECT coalesce(l.k, r.k) AS k, coalesce(l.window, r.window) AS window, l.v, "
    f"r.v AS u FROM ({COUNTED.format('ls')}) l FULL JOIN ({COUNTED.format('rs')}) r "
    "ON l.k = r.k AND l.window = r.window",
}


@pytest.fixture
def driver() -> Driver:
    made = Driver()
    for side in "lr":
        made.sql(f"CREATE STREAM {side}s (k STRING, v BIGINT, ts TIMESTAMP)")
        made.sql(f"CREATE TABLE {side}t (k STRING, v BIGINT, ts TIMESTAMP, PRIMARY KEY (k))")
    return made


def side(driver: Driver, name: str, kind: str) -> Any:
    stream = rj.Stream.of(driver, f"{name}s", time="ts").alias(name)
    if kind == "KStream":
        return stream
    if kind == "KTable":
        return rj.Table.of(driver, f"{name}t").alias(name)
    return stream.group_by("k").windowed(DAY).sum("v").alias(name)


def called(driver: Driver, left: str, right: str, kind: str) -> Side:
    """The join of a cell with all that it needs; SELECT as the SQL of the cell has it."""
    more: dict[str, Any] = {}
    if right == "WTable" and left != "WTable" and kind == "left":
        more["window"] = "date_trunc('DAY', ts)"
    if left == right == "KStream":
        more |= {"on": "k", "within": ("10 seconds", "20 seconds")}
    select = ["coalesce(l.k, r.k) AS k" if kind == "outer" else "l.k"]
    if left == "WTable":
        select += ["coalesce(l.window, r.window) AS window" if kind == "outer" else "l.window"]
    method = getattr(side(driver, "l", left), METHODS[kind])
    made: Side = method(side(driver, "r", right), select=[*select, "l.v", "r.v AS u"], **more)
    return made


ALLOWED = [(cell["left"], cell["right"], kind) for cell in CELLS for kind in cell["allowed"]]
REJECTED = [(cell["left"], cell["right"], kind) for cell in CELLS for kind in cell["rejected"] if kind != "right"]


@pytest.mark.parametrize(("left", "right", "kind"), ALLOWED)
def test_a_cell_gives_the_type_of_its_primary_side_and_the_plan_of_sql(
    driver: Driver, left: str, right: str, kind: str
) -> None:
    made = called(driver, left, right, kind)
    cell = next(cell for cell in CELLS if (cell["left"], cell["right"]) == (left, right))
    assert type(made) is TYPES[cell["result"]] is TYPES[left]  # ks-op-result-type
    driver.insert("ls", {"k": "a", "v": 1, "ts": "2026-01-01 00:00:00"})
    driver.insert("rt", {"k": "a", "v": 2, "ts": "2026-01-01 00:00:00"})
    driver.sql("CREATE VIEW other AS SELECT k FROM ls")
    driver.step()
    assert made.explain() == driver.sql(f"EXPLAIN {SQL[left, right, kind]}")
    driver.sql(f"CREATE VIEW said AS {SQL[left, right, kind]}")
    driver.sql(f"CREATE VIEW made AS {made.query}")
    driver.insert("rs", {"k": "a", "v": 3, "ts": "2026-01-01 00:00:05"})
    driver.insert("lt", {"k": "a", "v": 4, "ts": "2026-01-01 00:00:00"})
    changed = driver.step()
    assert changed["said"] == changed["made"] and (changed["made"] or kind == "left")


def test_the_sql_of_every_cell_is_tried() -> None:
    assert sorted(SQL) == sorted(ALLOWED) and len(ALLOWED) == 13


@pytest.mark.parametrize(("left", "right", "kind"), REJECTED)
def test_what_the_matrix_forbids_fails_with_the_reason(driver: Driver, left: str, right: str, kind: str) -> None:
    with pytest.raises(Unsupported, match=f"{METHODS[kind]} of a .* with a .* is not supported") as refused:
        called(driver, left, right, kind)
    assert refused.value.hint and refused.value.detail


@pytest.mark.parametrize("kind", [rj.Stream, rj.Table, rj.WindowedTable])
def test_there_is_no_right_join(kind: type) -> None:  # ks-op-no-right-join
    assert not hasattr(kind, "right_join")


def test_a_windowed_table_goes_nowhere_but_through_a_stream(driver: Driver) -> None:
    windowed = side(driver, "l", "WTable")
    assert not hasattr(windowed, "to") and not hasattr(windowed, "through")  # ks-op-wtable-no-topic
    assert not hasattr(rj.WindowedTable, "of")  # ks-op-wtable-created
    windowed.to_stream("k", "v").to("shown")
    assert driver.catalog.find("shown") is not None


def test_keys_of_different_types_are_refused(driver: Driver) -> None:  # ks-op-join-key
    driver.sql("CREATE TABLE numbered (id BIGINT, v BIGINT, PRIMARY KEY (id))")
    numbered = rj.Table.of(driver, "numbered")
    for left in (side(driver, "l", "KTable"), side(driver, "l", "WTable"), side(driver, "l", "KStream")):
        with pytest.raises(TypeMismatch, match="keys of different types") as refused:
            left.left_join(numbered, on={"k": "id"})
        assert "k is string, numbered.id is bigint" in (refused.value.detail or "")
        assert "CAST(k AS bigint)" in (refused.value.hint or "")


def test_a_partitioning_of_its_own_is_no_reason_to_refuse(driver: Driver) -> None:
    """Inputs need not be copartitioned: the exchange brings equal keys together, whatever they came by."""
    view = called(driver, "KTable", "KTable", "inner")
    driver.sql(f"CREATE VIEW made AS {view.query}")
    driver.restart(parallelism=4)
    driver.insert("lt", *({"k": str(i), "v": i} for i in range(20)))
    driver.step()
    driver.restart(parallelism=3)
    driver.insert("rt", *({"k": str(i), "v": i} for i in range(20)))
    assert sorted(row["v"] for row, _ in driver.step()["made"]) == list(range(20))


def test_every_error_of_the_dsl_is_one_of_ours(driver: Driver) -> None:
    stream, table, windowed = (side(driver, "l", kind) for kind in ("KStream", "KTable", "WTable"))
    other = {kind: side(driver, "r", kind) for kind in TYPES}
    wrong: list[tuple[str, Any]] = [
        ("both sides of the join are called `l`", lambda: table.join(table)),
        ("is joined by its key", lambda: stream.left_join(other["KTable"], on={"v": "v"})),
        ("`r` has no column `nothing`", lambda: stream.join(other["KStream"], on="nothing", within="1 second")),
        ("has no key", lambda: stream.join(other["KStream"], on=[], within="1 second")),
        ("has no bound in time", lambda: stream.left_join(other["KStream"], on="k")),
        ("has no key", lambda: stream.left_join(other["KStream"], within="1 second")),
        ("the time of `r` is not known", lambda: stream.join(rj.Stream.of(driver, "rs").alias("r"), on="k", within=1)),
        ("which window of `r`", lambda: stream.left_join(other["WTable"], on="k")),
        ("selects no window of `r`", lambda: table.left_join(other["WTable"], window="v")),
        ("windows of different sizes", lambda: windowed.join(_hourly(driver))),
        ("must be selected", lambda: table.join(other["KTable"], select=["r.v"])),
        ("must be selected", lambda: windowed.select("k", "v")),
        ("has no column `nowhere`", lambda: stream.to_table("nowhere")),
        ("grouped by nothing", lambda: table.group_by().count()),
        ("is not a stream", lambda: rj.Stream.of(driver, "lt")),
        ("is not a table by a key", lambda: rj.Table.of(driver, "ls")),
    ]
    for words, act in wrong:
        with pytest.raises(RejoinderError) as refused:
            act()
        assert words in str(refused.value), words


def _hourly(driver: Driver) -> rj.WindowedTable:
    return rj.Stream.of(driver, "rs", time="ts").group_by("k").windowed(rj.tumble("1 hour")).sum("v").alias("r")
