"""The interactive prompt: several lines to a statement, backslash words, errors that do not end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rejoinder.cli.commands.ask import ask
from rejoinder.cli.terminal import prompt
from rejoinder.cli.terminal.answers import Showing
from rejoinder.testing import Driver

Type = Callable[..., None]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Say what is typed, line by line; an exception class stands for its key."""
    monkeypatch.setattr(prompt, "HISTORY", tmp_path / "history")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def set_lines(*lines: str | type[BaseException]) -> None:
        given: Iterator[str | type[BaseException]] = iter(lines)

        def read(_: str) -> str:
            line = next(given, EOFError)
            if isinstance(line, str):
                return line
            raise line

        monkeypatch.setattr("builtins.input", read)

    return set_lines


def test_input_is_read_until_the_semicolon(typed: Type) -> None:
    typed("SELECT 1", "  FROM t;", "", "SELECT ';'", ";", "\\q", "never read")
    assert list(prompt.statements()) == ["SELECT 1\n  FROM t;", "SELECT ';'\n;"]


def test_ctrl_c_clears_the_line_and_the_end_of_input_quits(typed: Type) -> None:
    typed("SELECT 'open", KeyboardInterrupt, "SHOW VIEWS;", EOFError, "never read")
    assert list(prompt.statements()) == ["SHOW VIEWS;"]


def test_quit_in_the_middle_of_a_statement(typed: Type) -> None:
    typed("SELECT", "\\q", "never read")
    assert list(prompt.statements()) == []


def test_a_conversation(typed: Type, shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed("SELECT id FROM", "priced;", "SELECT nope FROM priced;", "\\d", "\\y", "\\?", "SHOW VIEWS;", "quit")
    ask(shop, None, Showing())
    out, err = capsys.readouterr()
    assert "(2 rows)" in out and out.count("priced") >= 2
    assert "epoch 1, views: priced" in err
    assert "there is no column `nope`" in err
    assert "`\\y` is not known" in err and "Statements end with a semicolon" in err


def test_a_statement_sees_what_a_flow_committed_meanwhile(
    typed: Type, shop: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(store=shop, parallelism=2)

    def talk() -> Iterator[str]:
        yield "SELECT id FROM priced;"
        driver.insert("orders", {"id": 3, "item": "tea"})
        driver.step()
        yield "SELECT id FROM priced;"

    monkeypatch.setattr("rejoinder.cli.commands.ask.statements", talk)
    ask(shop, None, Showing())
    out = capsys.readouterr().out
    assert "(2 rows)" in out and "(3 rows)" in out


def test_backslash_x_switches_the_expanded_form(typed: Type, shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed("\\x", "SELECT id FROM priced;", "\\x off", "SELECT id FROM priced;", "\\x auto", "\\x what", "quit")
    ask(shop, None, Showing())
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == ["── 1 ─────────", "id  1"]
    assert out.splitlines()[5:7] == ["id", "──"]
    assert [line for line in err.splitlines() if "expanded" in line] == [
        f"expanded form: {word}" for word in ("on", "off", "auto")
    ]
    assert "`\\x what` is not known" in err


def test_the_history_belongs_to_its_owner_and_holds_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("old")
    path.chmod(0o666)
    prompt.write_history(path, ["CREATE SINK k FROM v USING jdbc OPTIONS (url 'u', password", " 'CANARY');", None])
    assert "CANARY" not in path.read_text() and "CREATE SINK" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        prompt.write_history(tmp_path / "link", ["x"])
