"""Output where UTF-8 is not taken: plain signs, escapes of JSON, and never an error."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys

import pytest

from rejoinder.cli.terminal import terminal_encoding
from rejoinder.testing import Driver


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(terminal_encoding).failed == 0


@pytest.fixture
def umlauts(tmp_path: object) -> str:
    place = f"{tmp_path}/state"
    driver = Driver(store=place)
    driver.sql("CREATE STREAM o (name STRING); CREATE VIEW v AS SELECT name FROM o")
    driver.insert("o", {"name": "Jürgen 𝄞"})
    driver.step()
    return place


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_every_row_is_shown(umlauts: str, encoding: str) -> None:
    def answer(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "rejoinder.cli.entry", "sql", umlauts, *arguments]
        environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        return subprocess.run(command, capture_output=True, check=False, env=environment)

    table = answer("SELECT * FROM v; SELECT nope FROM v")
    assert table.returncode == 1 and b"\n----" in table.stdout and b"(1 row)" in table.stdout
    assert b"error: there is no column `nope`" in table.stderr and b"1 | SELECT" in table.stderr
    rows = answer("SELECT * FROM v", "--format", "json")
    assert json.loads(rows.stdout.decode(encoding)) == {"name": "Jürgen 𝄞"}, "nothing of a value is lost"
