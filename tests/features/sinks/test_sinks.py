"""Sinks in the test driver: every epoch once and in order, failures that stop, snapshots, what is shown of them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import rejoinder.connectors.delivery as delivery_module
from rejoinder.errors import DefinitionConflict, InvalidSql, MissingInput, SinkFailed, UnknownName, Unsupported
from rejoinder.testing import Driver

Received = list[tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """A driver on disk with a changelog source and a view of all of it."""
    driver = Driver(store=tmp_path / "state", parallelism=2)
    driver.sql("CREATE CHANGELOG a (id BIGINT, name STRING); CREATE VIEW v AS SELECT id, name FROM a")
    return driver


def receive(driver: Driver, **options: Any) -> Received:
    """A function as sink that keeps what it gets."""
    received: Received = []
    driver.foreach_epoch("v", lambda epoch, rows: received.append((epoch, rows.to_pylist())), **options)
    return received


def summed(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The rows that changes add up to; zeros are gone."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        counts[tuple(value for name, value in row.items() if not name.startswith("_"))] += row["_diff"]
    assert min(counts.values(), default=0) >= 0
    return +counts


def in_view(driver: Driver) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in driver.table("v"))


def in_folder(folder: Path, kind: str) -> list[dict[str, Any]]:
    """All rows of the files of a folder, in the order of their names."""
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"*.{kind}")):
        if kind == "parquet":
            rows += pq.read_table(path).to_pylist()
        elif kind == "csv":
            rows += pacsv.read_csv(path).to_pylist()
        else:
            rows += [json.loads(line) for line in path.read_text().splitlines()]
    return rows


def test_each_epoch_comes_once_and_in_order(driver: Driver) -> None:
    received = receive(driver)
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    driver.step()
    driver.insert("a", {"id": 2, "name": "y"})
    driver.delete("a", {"id": 1, "name": "x"})
    driver.step()
    assert received == [
        (0, [{"id": 1, "name": "x", "_epoch": 0, "_diff": 1}]),
        (2, [{"id": 1, "name": "x", "_epoch": 2, "_diff": -1}, {"id": 2, "name": "y", "_epoch": 2, "_diff": 1}]),
    ]


@pytest.mark.parametrize(("start", "first"), [("start", [(1, 3)]), ("now", [])])
def test_a_new_sink_starts_with_a_snapshot_or_with_what_comes(
    driver: Driver, start: str, first: list[tuple[int, int]]
) -> None:
    driver.insert("a", {"id": 1, "name": "x"}, {"id": 2, "name": "y"})
    driver.step()
    driver.insert("a", {"id": 2, "name": "y"}, {"id": 3, "name": "z"})
    driver.step()
    received = receive(driver, from_=start)
    driver.insert("a", {"id": 4, "name": "w"})
    driver.step()
    assert [(epoch, len(rows)) for epoch, rows in received] == [*first, (2, 1)]
    if first:
        assert {row["id"]: row["_diff"] for row in received[0][1]} == {1: 1, 2: 2, 3: 1}


def test_what_a_view_holds_before_the_first_epoch_comes_with_it(driver: Driver) -> None:
    driver.sql("CREATE VIEW counted AS SELECT COUNT(*) AS n FROM a")
    received: Received = []
    driver.foreach_epoch("counted", lambda epoch, rows: received.append((epoch, rows.to_pylist())))
    driver.restart()
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    driver.insert("a", {"id": 2, "name": "y"})
    driver.step()
    assert [[(row["n"], row["_diff"]) for row in rows] for _, rows in received] == [[(1, 1)], [(1, -1), (2, 1)]]


def test_a_sink_that_fails_stops_the_flow_and_gets_the_epoch_again(driver: Driver) -> None:
    received: Received = []
    broken = True

    def take(epoch: int, rows: pa.Table) -> None:
        if broken and epoch == 1:
            raise ValueError("the disk is full")
        received.append((epoch, rows.to_pylist()))

    driver.foreach_epoch("v", take, name="taker")
    for number in range(2):
        driver.insert("a", {"id": number, "name": "x"})
        if number == 0:
            driver.step()
    with pytest.raises(SinkFailed, match="sink `taker` failed at epoch 1") as failure:
        driver.step()
    assert "the disk is full" in str(failure.value.values) and "run again" in str(failure.value.hint)
    assert driver.epoch == 1 and len(driver.table("v")) == 2, "what was committed is there"
    with pytest.raises(SinkFailed):
        driver.step()
    assert driver.epoch == 1, "no epoch goes by while one waits"
    broken = False
    driver.step()
    assert [epoch for epoch, _ in received] == [0, 1]


def test_after_a_restart_nothing_comes_again(driver: Driver) -> None:
    received = receive(driver)
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    driver.restart(parallelism=3)
    driver.insert("a", {"id": 2, "name": "y"})
    driver.step()
    assert [epoch for epoch, _ in received] == [0, 1]


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_add_up_to_the_view(driver: Driver, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "PART_ROWS", 10)
    folder = tmp_path / "out"
    driver.sql(f"CREATE SINK s FROM v USING {kind} OPTIONS (path '{folder}')")
    for epoch in range(4):
        driver.insert("a", *[{"id": i, "name": f"n{epoch}"} for i in range(40)])
        if epoch:
            driver.delete("a", *[{"id": i, "name": f"n{epoch - 1}"} for i in range(0, 40, 2)])
        driver.step()
    rows = in_folder(folder, kind)
    assert summed(rows) == in_view(driver) and Counter(row["_epoch"] for row in rows) == {0: 40, 1: 60, 2: 60, 3: 60}
    assert len(list(folder.glob(f"*.{kind}"))) > 4, "an epoch of many parts has many files"
    assert not list(folder.glob("_rejoinder/staged-*"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_an_attempt_that_died_half_way_is_written_over(driver: Driver, tmp_path: Path, kind: str) -> None:
    """As after a crash between the files of an epoch and the note that they are there, by an attempt of more parts."""
    folder = tmp_path / "out"
    driver.sql(f"CREATE SINK s FROM v USING {kind} OPTIONS (path '{folder}')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    before = (folder / "_rejoinder" / "progress.json").read_bytes()
    driver.insert("a", {"id": 2, "name": "y"})
    driver.step()
    (folder / "_rejoinder" / "progress.json").write_bytes(before)
    shutil.copy(folder / f"epoch-0000000001-0000.{kind}", folder / f"epoch-0000000001-0001.{kind}")
    (folder / "_rejoinder" / "staged-dead").mkdir()
    driver.restart()
    driver.step()
    assert [row["id"] for row in in_folder(folder, kind)] == [1, 2]
    assert not list(folder.glob("_rejoinder/staged-*"))


def test_values_of_every_type_come_back_from_json_files(tmp_path: Path) -> None:
    columns = (
        "b BOOLEAN, i INT, f DOUBLE, d DECIMAL(20, 4), s STRING, y BINARY, t TIMESTAMP, n TIMESTAMP_NTZ, "
        "e DATE, l ARRAY<INT>, st STRUCT<x: INT, y: STRING>, z ARRAY<STRUCT<y: BINARY, f: FLOAT, e: DATE>>, "
        "m MAP<STRING, BINARY>, big DECIMAL(38, 10)"
    )
    driver = Driver()
    driver.sql(f"CREATE STREAM a ({columns}); CREATE VIEW v AS SELECT * FROM a")
    driver.sql(f"CREATE SINK s FROM v USING json OPTIONS (path '{tmp_path / 'out'}')")
    driver.insert(
        "a",
        {
            "b": True, "i": -3, "f": 0.1, "d": "1234567890123.4567", "s": 'a "quoted"\nline',
            "t": "2026-01-01T10:00:00.123456", "n": "2026-01-01T10:00:00",
            "e": "2026-01-02", "l": [1, None], "st": {"x": 1, "y": "é"}, "y": b"\xff\x00",
            "z": [{"y": b"a", "f": 0.5, "e": date(2026, 1, 2)}, None], "m": {"k": b"\x01"},
            "big": "1234567890123456789012345678.0123456789",
        },
        {"f": float("inf"), "z": [{"f": float("-inf")}]},
        {},
    )  # fmt: skip
    driver.step()
    again = Driver()
    again.sql(f"CREATE STREAM a ({columns}) USING json OPTIONS (path '{tmp_path / 'out'}')")
    again.sql("CREATE VIEW v AS SELECT * FROM a")
    again.step()
    assert again.table("v") == driver.table("v")


def test_times_come_back_from_csv_files(tmp_path: Path) -> None:
    columns = "t TIMESTAMP, n TIMESTAMP_NTZ, e DATE"
    driver = Driver()
    driver.sql(f"CREATE STREAM a ({columns}); CREATE VIEW v AS SELECT * FROM a")
    driver.sql(f"CREATE SINK s FROM v USING csv OPTIONS (path '{tmp_path}')")
    time = "2026-01-01T10:00:00.123456"
    driver.insert("a", {"t": time, "n": time, "e": "2026-01-02"}, {"e": "2026-01-03"})
    driver.step()
    again = Driver()
    again.sql(f"CREATE STREAM a ({columns}) USING csv OPTIONS (path '{tmp_path}', header 'true')")
    again.sql("CREATE VIEW v AS SELECT * FROM a")
    again.step()
    assert again.table("v") == driver.table("v")


def test_the_console_shows_the_changes(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    driver.sql("CREATE SINK c FROM v USING console OPTIONS (limit '2')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    driver.insert("a", *[{"id": i, "name": "y"} for i in range(3)], {"id": 7, "name": "z"}, {"id": 7, "name": "z"})
    driver.delete("a", {"id": 1, "name": "x"})
    driver.step()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "epoch 0  v: 0 retracted, 1 added"
    assert lines[3].split() == ["+", "1", "x"]
    assert lines[4] == "epoch 1  v: 1 retracted, 5 added"
    assert lines[7].split() == ["−", "1", "x"] and lines[-1].startswith("… and ")


def test_show_sinks_and_drop(driver: Driver, tmp_path: Path) -> None:
    driver.sink("V", "parquet", name="s", path=tmp_path / "out")
    assert driver.sql("SHOW SINKS") == [
        {"sink": "s", "view": "v", "format": "parquet", "options": f"path '{tmp_path}/out'", "delivered": None}
    ]
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    assert driver.sql("SHOW SINKS")[0]["delivered"] == 0
    with pytest.raises(DefinitionConflict, match="`v` is read by sink `s`"):
        driver.sql("DROP VIEW v")
    with pytest.raises(DefinitionConflict, match="`s` differs from the definition stored in this state"):
        driver.sql("CREATE SINK S FROM v USING console")
    driver.sql("CREATE SINK IF NOT EXISTS s FROM v USING console")
    driver.sql("DROP SINK s; DROP SINK IF EXISTS s; DROP VIEW v")
    assert driver.sql("SHOW SINKS") == []
    with pytest.raises(UnknownName, match="there is no sink `s`"):
        driver.sql("DROP SINK s")


def test_a_folder_of_another_sink_is_refused(driver: Driver, tmp_path: Path) -> None:
    text = f"CREATE SINK s FROM v USING parquet OPTIONS (path '{tmp_path}/out')"
    driver.sql(text)
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    driver.sql("DROP SINK s")
    with pytest.raises(SinkFailed, match="belongs to another sink"):
        driver.sql(text)


def test_a_sink_that_is_ahead_of_the_flow_is_refused(driver: Driver, tmp_path: Path) -> None:
    driver.sql(f"CREATE SINK s FROM v USING json OPTIONS (path '{tmp_path}/out')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    driver.insert("a", {"id": 2, "name": "y"})
    driver.step()
    driver = Driver(store=tmp_path / "backup")
    with pytest.raises(SinkFailed, match=r"has epoch 1, and the flow is at epoch 0[\s\S]*Hint: restore the sink"):
        driver.step()
    assert driver.epoch == 0


BAD = {
    "USING avro": (Unsupported, "format `avro` of sink `s` is not known"),
    "USING parquet": (InvalidSql, "has no path"),
    "USING parquet OPTIONS (pth 'x')": (UnknownName, "option `pth`"),
    "USING parquet OPTIONS (path 'x', mode 'upsert')": (InvalidSql, "option `mode` of sink `s` is 'upsert'"),
    "USING delta OPTIONS (path 'x', mode 'upsert')": (InvalidSql, "has mode 'upsert' and no key"),
    "USING delta OPTIONS (path 'x', mode 'upsert', key 'idd')": (UnknownName, "has no column `idd`"),
    "USING console OPTIONS (from 'then')": (InvalidSql, "option `from` of sink `s` is 'then'"),
    "USING console OPTIONS (limit 'x')": (InvalidSql, "option `limit` of sink `s` is 'x'"),
    "USING jdbc OPTIONS (url 'jdbc:x:y', dbtable 't', password 'geheim')": (InvalidSql, "contains a secret"),
    "USING delta OPTIONS (path 'x')": (Unsupported, "needs Spark"),
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_refused(driver: Driver, text: str) -> None:
    kind, fact = BAD[text]
    with pytest.raises(kind, match=fact) as refused:
        driver.sql(f"CREATE SINK s FROM v {text}")
    assert refused.value.hint
    assert "geheim" not in str(refused.value)
    assert driver.sql("SHOW SINKS") == []


def test_a_path_that_cannot_be_made(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkFailed, match="cannot write to"):
        driver.sql(f"CREATE SINK s FROM v USING json OPTIONS (path '{tmp_path}/file/out')")


def test_sources_and_columns_that_do_not_fit(driver: Driver) -> None:
    with pytest.raises(Unsupported, match="which is a source"):
        driver.sql("CREATE SINK s FROM a USING console")
    driver.sql("CREATE VIEW l AS SELECT ARRAY(id) AS ids FROM a")
    with pytest.raises(Unsupported, match="cannot be written as CSV"):
        driver.sql("CREATE SINK s FROM l USING csv OPTIONS (path 'x')")


def test_a_function_that_is_not_declared_again(driver: Driver, tmp_path: Path) -> None:
    receive(driver, name="mine")
    driver.step()
    other = Driver(store=tmp_path / "state")
    with pytest.raises(UnknownName, match="the function of sink `mine` is not declared"):
        other.step()
    other.sql("DROP SINK mine")
    other.step()


def test_secrets_are_stored_as_references(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    from rejoinder.secret_options import redacted_text, resolved, scrubbed

    options = {"user": "ada", "password": "env:RJ_TEST_PASSWORD"}
    with pytest.raises(MissingInput, match="`RJ_TEST_PASSWORD` is not set"):
        resolved("sink `s`", options)
    monkeypatch.setenv("RJ_TEST_PASSWORD", "geheim")
    assert resolved("sink `s`", options) == {"user": "ada", "password": "geheim"}
    assert scrubbed("login with geheim failed", options) == "login with *** failed"
    with pytest.raises(InvalidSql) as refused:
        driver.sql("CREATE SINK s FROM v USING jdbc OPTIONS (url 'x', dbtable 't', password 'geheim")
    assert "geheim" not in str(refused.value)
    with pytest.raises(InvalidSql) as refused:
        driver.sql("CREATE SINK s FROM v USING jdbc OPTIONS (url 'x', password 'geheim' dbtable) more")
    assert "geheim" not in str(refused.value)
    assert redacted_text("postgres://ada:geheim@db/shop") == "postgres://ada:***@db/shop"


PEM = "-----BEGIN PRIVATE KEY-----\ngeheim\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("kafka.ssl.keystore.key", "geheim"),
        ("kafka.ssl.chain", PEM),
        ("url", "jdbc:oracle:thin:scott/geheim@db:1521:shop"),
        ("url", "jdbc:sqlserver://db;user=ada;pwd=geheim"),
    ],
)
def test_secrets_that_look_otherwise(option: str, value: str) -> None:
    from rejoinder.secret_options import is_secret, redacted, redacted_text

    assert is_secret(option, value) and redacted({option: value}) == {option: "***"}
    assert "geheim" not in redacted_text(f"OPTIONS ({option} '{value}')")
    assert not is_secret("kafka.ssl.keystore.location", "/etc/keys.pem")
