"""The contract of the Driver, as issue 3 and its docstrings give it."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import (
    Corrupt,
    InputError,
    InvalidSql,
    MissingRow,
    NotCommitted,
    NullKey,
    RejoinderError,
    StorageFailed,
)
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.testing import Driver

TYPES = {
    "b": ("BOOLEAN", True),
    "i1": ("TINYINT", -128),
    "i2": ("SMALLINT", 3),
    "i4": ("INT", 2**31 - 1),
    "i8": ("BIGINT", -(2**63)),
    "f4": ("FLOAT", 0.5),
    "f8": ("DOUBLE", 0.1),
    "de": ("DECIMAL(10,2)", Decimal("12.50")),
    "s": ("STRING", "ä"),
    "by": ("BINARY", b"\x00\xff"),
    "d": ("DATE", date(2024, 2, 29)),
    "t": ("TIMESTAMP", datetime(2024, 2, 29, 12, 30, 0, 5)),
    "n": ("TIMESTAMP_NTZ", datetime(2024, 2, 29, 12, 30)),
    "a": ("ARRAY<INT>", [1, None]),
    "r": ("STRUCT<x: INT, y: STRING>", {"x": 1, "y": None}),
    "m": ("MAP<STRING, INT>", {"k": 1}),
    "md": ("MAP<DATE, ARRAY<MAP<INT, BOOLEAN>>>", {date(2024, 2, 29): [{1: True}, {}]}),
}


def simple(kind: str = "CHANGELOG") -> Driver:
    driver = Driver()
    key = ", PRIMARY KEY (k)" if kind == "TABLE" else ""
    driver.sql(f"CREATE {kind} a (k INT, s STRING{key}); CREATE VIEW v AS SELECT k, s FROM a")
    return driver


def test_rows_of_every_type_come_back_as_plain_values() -> None:
    driver = Driver(parallelism=2)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    driver.sql(f"CREATE CHANGELOG a ({columns}); CREATE VIEW v AS SELECT * FROM a")
    row = {name: value for name, (_, value) in TYPES.items()}
    driver.insert("a", row, {})
    changes = driver.step()["v"]
    assert changes == [(dict.fromkeys(TYPES), 1), (row, 1)]
    driver.restart()
    driver.delete("a", row)
    assert driver.step()["v"] == [(row, -1)]
    assert driver.table("v") == [dict.fromkeys(TYPES)]


def test_times_and_decimals_may_be_written_simply() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (d DATE, t TIMESTAMP, p DECIMAL(10,2)); CREATE VIEW v AS SELECT * FROM a")
    driver.insert("a", {"d": "2024-02-29", "t": "2024-02-29 12:30:00", "p": 9.5})
    driver.insert("a", {"d": date(2024, 2, 29), "t": datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc), "p": "9.50"})
    assert driver.step()["v"] == [
        ({"d": date(2024, 2, 29), "t": datetime(2024, 2, 29, 12, 30), "p": Decimal("9.50")}, 2)
    ]


def test_tables_are_upserted_by_key() -> None:
    driver = simple("TABLE")
    driver.insert("a", {"k": 1, "s": "one"}, {"k": 2, "s": "two"}, {"k": 1, "s": "ONE"})
    assert driver.step()["v"] == [({"k": 1, "s": "ONE"}, 1), ({"k": 2, "s": "two"}, 1)]
    driver.insert("a", {"k": 1, "s": "ONE"})
    assert driver.step()["v"] == [], "nothing has changed"
    driver.delete("a", {"k": 1}, {"k": 9})
    assert driver.step()["v"] == [({"k": 1, "s": "ONE"}, -1)]
    driver.delete("a", {"k": 2})
    driver.insert("a", {"k": 2, "s": "again"})
    assert driver.step()["v"] == [({"k": 2, "s": "two"}, -1), ({"k": 2, "s": "again"}, 1)]


def test_streams_only_grow() -> None:
    driver = simple("STREAM")
    driver.insert("a", {"k": 1, "s": "x"}, {"k": 1, "s": "x"})
    assert driver.step()["v"] == [({"k": 1, "s": "x"}, 2)]
    with pytest.raises(InputError, match="stream `a` is append-only") as raised:
        driver.delete("a", {"k": 1, "s": "x"})
    assert raised.value.detail and raised.value.hint


def test_views_and_unknown_relations_take_no_rows() -> None:
    driver = simple()
    for relation in ("v", "nope"):
        with pytest.raises(RejoinderError) as raised:
            driver.insert(relation, {"k": 1})
        assert raised.value.detail and raised.value.hint


@pytest.mark.parametrize("row", [{"kk": 1}, {1: 1}, {"k": "one"}, {"k": 2**40}, {"k": 1.5}, {"s": {1}}])
def test_a_row_that_does_not_fit_is_refused(row: dict[Any, object]) -> None:
    driver = simple()
    driver.insert("a", row)
    with pytest.raises(InputError) as raised:
        driver.step()
    assert "`a`" in raised.value.fact and (raised.value.detail or raised.value.values) and raised.value.hint
    driver.insert("a", {"k": 1, "s": "x"})
    assert driver.step()["v"] == [({"k": 1, "s": "x"}, 1)]


@pytest.mark.parametrize("act", ["insert", "delete"])
def test_what_is_no_row_is_refused_at_once(act: str) -> None:
    driver = simple()
    with pytest.raises(InputError) as raised:
        getattr(driver, act)("a", {"k": 1}, [{"k": 2}])
    assert raised.value.fact == "a row of `a` is a dict, and this is of type list"
    assert raised.value.values == "[{'k': 2}]" and raised.value.hint
    assert driver.step() == {"v": []}


def test_an_epoch_refused_for_its_rows_has_not_happened() -> None:
    driver = simple()
    driver.insert("a", {"k": 1, "s": "x"})
    driver.delete("a", {"k": 2, "s": "x"})
    with pytest.raises(MissingRow):
        driver.step()
    assert driver.epoch == -1
    assert driver.step() == {"v": []}
    keyed = simple("TABLE")
    keyed.insert("a", {"s": "x"})
    with pytest.raises(NullKey):
        keyed.step()
    assert keyed.step() == {"v": []}


def test_after_another_failure_the_rows_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = simple()
    driver.insert("a", {"k": 1, "s": "x"})

    def full(self: ObjectStore, name: str, data: object) -> None:
        raise StorageFailed("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "write", full)
        with pytest.raises(StorageFailed):
            driver.step()
    assert driver.step()["v"] == [({"k": 1, "s": "x"}, 1)]


def test_step_gives_net_changes_of_every_view() -> None:
    driver = simple()
    driver.sql("CREATE VIEW w AS SELECT DISTINCT s FROM a")
    driver.insert("a", {"k": 1, "s": "x"}, {"k": 2, "s": "x"})
    driver.delete("a", {"k": 2, "s": "x"})
    driver.insert("a", {"k": 3, "s": "y"})
    assert driver.step() == {
        "v": [({"k": 1, "s": "x"}, 1), ({"k": 3, "s": "y"}, 1)],
        "w": [({"s": "x"}, 1), ({"s": "y"}, 1)],
    }
    assert driver.step() == {"v": [], "w": []}


def test_retractions_come_first() -> None:
    driver = simple("TABLE")
    driver.insert("a", {"k": 1, "s": "b"}, {"k": 2, "s": "b"})
    driver.step()
    driver.insert("a", {"k": 1, "s": "a"}, {"k": 2, "s": "c"})
    assert [diff for _, diff in driver.step()["v"]] == [-1, -1, 1, 1]


def test_a_step_happens_at_a_time() -> None:
    driver = simple()
    for at in (datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13, tzinfo=timezone.utc), 1704117600000):
        driver.insert("a", {"k": 1, "s": "x"})
        driver.step(at=at)
    times = [row["_emit_time"] for row in driver.stream("v")]
    assert times == [datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13), datetime(2024, 1, 1, 14)]


def test_arguments_of_another_kind_are_refused() -> None:
    driver = simple()
    driver.insert("a", {"k": 1})
    for argument in (0, -1, 1.5, "2", None, True):
        with pytest.raises(InvalidSql, match="`parallelism` is"):
            Driver(parallelism=argument)  # type: ignore[arg-type]
    with pytest.raises(InvalidSql, match="`parallelism` is -3"):
        driver.restart(parallelism=-3)
    for at in ("2026-01-01", date(2026, 1, 1), 1.5):
        with pytest.raises(InputError, match="a step cannot be at"):
            driver.step(at=at)  # type: ignore[arg-type]
    assert driver.step() == {"v": [({"k": 1, "s": None}, 1)]}


def test_a_table_can_be_read_as_of_a_time() -> None:
    driver = simple()
    for minute in (0, 1):
        driver.insert("a", {"k": minute})
        driver.step(at=datetime(2026, 1, 1, 12, minute))
    for as_of in (0, datetime(2026, 1, 1, 12, 0, 59), datetime(2026, 1, 1, 12, 0, tzinfo=timezone.utc)):
        assert driver.table("v", as_of=as_of) == [{"k": 0, "s": None}]
    with pytest.raises(NotCommitted, match="no epoch was committed by that time"):
        driver.table("v", as_of=datetime(2025, 1, 1))
    with pytest.raises(NotCommitted) as raised:
        driver.table("v", as_of=99)
    assert raised.value.hint == "epochs 0 to 1 can be read"
    with pytest.raises(InvalidSql, match="`as_of` is '2026-01-01'"):
        driver.table("v", as_of="2026-01-01")  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_restart_keeps_only_what_is_committed(tmp_path: Path, where: str) -> None:
    driver = Driver(store=tmp_path / "state") if where == "disk" else Driver()
    driver.sql("CREATE CHANGELOG a (k INT); CREATE VIEW v AS SELECT k FROM a")
    driver.insert("a", {"k": 1})
    driver.step()
    driver.insert("a", {"k": 2})
    driver.restart(parallelism=4)
    assert driver.table("v") == [{"k": 1}] and driver.step() == {"v": []}
    if where == "disk":
        assert Driver(store=tmp_path / "state").table("v") == [{"k": 1}]


def test_a_restart_reads_the_runs_anew(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path)
    driver.sql("CREATE CHANGELOG a (k INT); CREATE VIEW v AS SELECT k FROM a")
    driver.insert("a", {"k": 1})
    driver.step()
    assert driver.table("v") == [{"k": 1}]
    for path in tmp_path.glob("runs/*/*.arrow"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.unlink()  # what is mapped stays as it was
        path.write_bytes(content)
    driver.restart()
    with pytest.raises(Corrupt, match="fails its checksum"):
        driver.table("v")


def test_drivers_do_not_see_each_other() -> None:
    one, other = simple(), Driver()
    one.step()
    assert other.epoch == -1
    with pytest.raises(RejoinderError):
        other.table("v")


def test_a_source_without_an_event_time_has_no_watermark() -> None:
    driver = simple()
    with pytest.raises(InputError, match="`a` has no event-time column"):
        driver.watermark("a", datetime(2024, 1, 1))
    with pytest.raises(InputError, match="`a` has no event-time column"):
        driver.idle("a")
    assert driver.watermarks("v") == {} and driver.late("v") == []


def test_names_of_relations_compare_without_case() -> None:
    driver = simple()
    driver.insert("A", {"k": 1, "s": "x"})
    driver.step()
    assert driver.table("V") == driver.table("v") == [{"k": 1, "s": "x"}]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE CHANGELOG p (id BIGINT) USING kafka OPTIONS (bootstrap 'b:1', topic 'c', op 'op')",
        "CREATE CHANGELOG p (id BIGINT) USING kafka OPTIONS (bootstrap 'b:1', topic 'c', diff 'n')",
        "CREATE TABLE p (id BIGINT, PRIMARY KEY (id)) USING kafka OPTIONS (bootstrap 'b:1', topic 'c', op 'op')",
        "CREATE CHANGELOG p (id BIGINT) USING delta OPTIONS (path '/nowhere')",
    ],
)
def test_rows_in_place_of_records_say_nothing_of_what_they_do(text: str) -> None:
    driver = Driver()
    driver.sql(f"{text}; CREATE VIEW v AS SELECT id FROM p")
    driver.insert("p", {"id": 1})
    assert driver.step() == {"v": [({"id": 1}, 1)]}
    driver.delete("p", {"id": 1})
    assert driver.step() == {"v": [({"id": 1}, -1)]}
