"""Values and names that would act on a terminal or a spreadsheet are shown, and do nothing."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from rejoinder.testing import Driver
from tests.unit.cli.conftest import Rejoinder

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj.exe\u2066\r\x7f"
ACTING = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x7f", "\r")
FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\tx", "＝1+1"]
PLAIN = ["-12.5", "+41", "-1e-9", "plain", "a=b", "", "it's"]


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    place = str(tmp_path / "hostile")
    driver = Driver(store=place)
    driver.sql("CREATE STREAM t (id BIGINT, s STRING, `n\x1b[1m\u202e` STRING); CREATE VIEW v AS SELECT * FROM t")
    texts = [HOSTILE, *FORMULAS, *PLAIN]
    driver.insert("t", *({"id": -number, "s": text, "n\x1b[1m\u202e": HOSTILE} for number, text in enumerate(texts)))
    driver.step()
    return place


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM v", "SELECT STREAM * FROM v", "SELECT TVR * FROM v", "EXPLAIN v", "SHOW VIEWS", "SHOW SOURCES"],
)
@pytest.mark.parametrize("format_", ["table", "json"])
def test_nothing_that_acts_reaches_the_terminal(
    rejoinder: Rejoinder, hostile: str, statement: str, format_: str
) -> None:
    result = rejoinder("sql", hostile, statement, "--format", format_)
    assert result.exit_code == 0 and result.stdout
    assert not [sign for sign in ACTING if sign in result.stdout + result.stderr]


def test_errors_do_not_act_either(rejoinder: Rejoinder, hostile: str) -> None:
    result = rejoinder("sql", hostile, f"SELECT `x{HOSTILE}` FROM v")
    assert result.exit_code == 1 and "gpj.exe" in result.stderr
    assert not [sign for sign in ACTING if sign in result.stderr]
    failed = rejoinder("--show-values", "explain", hostile, f"x{HOSTILE}")
    assert not [sign for sign in ACTING if sign in failed.stderr + failed.stdout]


def test_json_has_the_values_themselves(rejoinder: Rejoinder, hostile: str) -> None:
    result = rejoinder("sql", hostile, "SELECT s FROM v WHERE id = 0", "--format", "json")
    assert json.loads(result.stdout) == {"s": HOSTILE}


def _fields(text: str) -> list[str]:
    return [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]


def test_formulas_are_guarded_in_csv_unless_an_option_says_otherwise(rejoinder: Rejoinder, hostile: str) -> None:
    query = "SELECT s, id FROM v WHERE id < 0 ORDER BY id DESC"
    result = rejoinder("sql", hostile, query, "--format", "csv")
    assert _fields(result.stdout_bytes.decode()) == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    assert ",-1\n" in result.stdout  # a number stays a number
    plain = rejoinder("sql", hostile, query, "--format", "csv", "--no-guard")
    assert _fields(plain.stdout_bytes.decode()) == [*FORMULAS, *PLAIN]


@pytest.mark.parametrize("guard", ["", ", guard 'true'", ", guard 'false'"])
def test_csv_sinks_guard_formulas(tmp_path: Path, guard: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (id BIGINT, s STRING, d DECIMAL(9, 2)); CREATE VIEW v AS SELECT s, id, d FROM t")
    driver.sql(f"CREATE SINK k FROM v USING csv OPTIONS (path '{tmp_path}/out'{guard})")
    texts = [*FORMULAS, *PLAIN, "a\x1b[2J\u202eb"]
    driver.insert("t", *({"id": -number, "s": text, "d": -1} for number, text in enumerate(texts)))
    driver.step()
    (file,) = (tmp_path / "out").glob("*.csv")
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    found = {-int(row["id"]): row["s"] for row in rows}
    guarded = [*(f"'{text}" for text in FORMULAS), *PLAIN, "a\ufffd[2J\ufffdb"]
    assert [found[number] for number in range(len(texts))] == (texts if "false" in guard else guarded)
    assert {row["d"] for row in rows} == {"-1.00"} and "-1" in {row["id"] for row in rows}


def test_the_console_sink_is_neutral(capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (s STRING); CREATE VIEW v AS SELECT s FROM t; CREATE SINK k FROM v USING console")
    driver.insert("t", {"s": HOSTILE})
    driver.step()
    shown = capsys.readouterr().out
    assert "gpj.exe" in shown and not [sign for sign in ACTING if sign in shown]
    assert not [sign for sign in ACTING if sign in str(driver.sql("SELECT s FROM v"))]
