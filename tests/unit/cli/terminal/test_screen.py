"""What is shown: values, tables, changes, progress; and the commands' own options."""

from __future__ import annotations

import doctest
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

import rejoinder as package
from rejoinder.cli.terminal import progress_line, result_tables, screen
from rejoinder.cli.terminal.change_lines import counts, show_changes
from rejoinder.engine.epoch_progress import Progress
from rejoinder.formats.text.row_text import text
from rejoinder.sql.statements import query_text
from tests.unit.cli.conftest import Rejoinder


def test_version_and_help(rejoinder: Rejoinder) -> None:
    assert rejoinder("--version").stdout == f"rejoinder {package.__version__}\n"
    shown = rejoinder("--help").stdout
    assert all(command in shown for command in ("run", "sql", "explain", "demo", "--debug"))


@pytest.mark.parametrize("module", [screen, result_tables, query_text])
def test_examples_in_docstrings(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (float("nan"), "nan"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, 600_000), "2026-01-02 03:04:05.6"),
        (b"\x00" * 40, "0x" + "00" * 24 + "…"),
        ("two\nlines", "two⏎lines"),
        ([("k", 1), ("l", None)], "{k: 1, l: NULL}"),
        ({"start": 1, "end": 2}, "[1, 2)"),
        ({"start": datetime(2026, 1, 1), "end": datetime(2026, 1, 2)}, "[2026-01-01 00:00, 2026-01-02 00:00)"),
    ],
)
def test_values_on_one_line(value: Any, shown: str) -> None:
    assert text(value) == shown


def test_wide_rows_are_not_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    result_tables.show_rows([{"a": "x" * 300, "b": 1}], ["a", "b"])
    assert capsys.readouterr().out.splitlines()[2] == "x" * 300 + "   1"


def test_markup_in_data_is_data(capsys: pytest.CaptureFixture[str]) -> None:
    result_tables.show_rows([{"[bold]": "[red]x[/red]"}], ["[bold]"])
    out = capsys.readouterr().out
    assert "[bold]" in out and "[red]x[/red]" in out


def test_changes_show_both_signs_and_copies(capsys: pytest.CaptureFixture[str]) -> None:
    changes = [({"id": number}, -1) for number in range(5)] + [({"id": number}, 2) for number in range(5, 10)]
    assert counts(changes) == "5 retracted, 10 added"
    show_changes(changes, limit=4)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown == ["− 0", "− 1", "+ 2 × 5", "+ 2 × 6", "… and 6 more"]
    show_changes([], limit=4)
    assert capsys.readouterr().out == ""
    assert counts([]) == "no change"


def test_progress_is_one_line_a_second_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress_line.ProgressLine("reading…") as line:
        for epoch in range(10):
            now += 0.25
            line.take(Progress(epoch, 0.25, {"a": 1_000, "b": 500}, {"v": 7}, 2_048, 1 << 20, 0.4))
    told = capsys.readouterr().err.splitlines()
    assert [text.split("  ")[0] for text in told] == ["epoch 3", "epoch 7", "epoch 9"]
    assert told[-1] == ("epoch 9  in 15,000 (6,000 rows/s)  out 70  state 1.0 MB  written 20.0 KB  lag 0.40 s")
    assert line.summary() == "10 epochs in 2.50 s: 15,000 rows in, 70 changes out"
