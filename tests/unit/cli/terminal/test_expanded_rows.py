"""Rows one below the other: by itself where a table is too wide for the terminal, or when asked for."""

from __future__ import annotations

import doctest
import io

import pytest
from rich.console import Console
from rich.text import Text

from rejoinder.cli.terminal import expanded_rows, result_tables
from tests.unit.cli.conftest import Rejoinder

ROWS: list[dict[str, str | None]] = [{"view": "sales", "query": "SELECT " + "x" * 100}, {"view": "日本", "query": None}]


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> io.StringIO:
    """A terminal of a width, instead of standard output."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, no_color=True, highlight=False, soft_wrap=True)
    for module in (result_tables, expanded_rows):
        monkeypatch.setattr(module, "out", console)
    return file


def shown(file: io.StringIO) -> list[str]:
    """The lines without control sequences."""
    return [Text.from_ansi(line).plain for line in file.getvalue().splitlines()]


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(expanded_rows).failed == 0


def test_a_table_that_is_too_wide_becomes_records_with_cut_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = terminal(monkeypatch, 40)
    result_tables.show_rows(ROWS, ["view", "query"])
    assert shown(file) == [
        "── 1 ────────────",
        "view   sales",
        "query  SELECT " + "x" * 25 + "…",
        "── 2 ────────────",
        "view   日本",
        "query  NULL",
    ]
    assert max(len(line) for line in shown(file)) == 40
    assert "--format json or a pipe shows them whole" in capsys.readouterr().err


def test_a_table_that_fits_stays_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    file = terminal(monkeypatch, 20)
    result_tables.show_rows([{"a": 1, "b": "x" * 16}], ["a", "b"])
    assert len(shown(file)) == 3
    file = terminal(monkeypatch, 19)
    result_tables.show_rows([{"a": 1, "b": "x" * 16}], ["a", "b"])
    assert shown(file)[0].startswith("── 1 ")
    file = terminal(monkeypatch, 19)
    result_tables.show_rows([{"a": 1, "b": "x" * 16}], ["a", "b"], expanded=False)
    assert "x" * 16 not in file.getvalue(), "folded"


def test_nothing_is_cut_in_a_pipe(rejoinder: Rejoinder, shop: str) -> None:
    long = "x" * 500
    for options in ([], ["--expanded"], ["--format", "csv"], ["--format", "json"]):
        result = rejoinder("sql", shop, f"SELECT id, '{long}' AS t FROM priced", *options)
        assert result.exit_code == 0 and long in result.stdout and "…" not in result.stdout
    whole = "61" * 60
    for options in ([], ["--format", "csv"], ["--format", "json"]):
        result = rejoinder("sql", shop, f"SELECT CAST('{'a' * 60}' AS BINARY) AS b FROM priced", *options)
        assert whole in result.stdout
