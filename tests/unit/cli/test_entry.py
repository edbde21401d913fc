"""The command from its first moment: it runs, and Ctrl-C while it loads prints no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.cli.entry import main

# A module that is imported first and stands for all that takes time to load.
INTERRUPTS = "import sys; sys.modules['rejoinder.cli.main'] = None\nraise KeyboardInterrupt"


def test_ctrl_c_while_loading(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(INTERRUPTS, encoding="utf-8")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"]
    command[-1] += "from rejoinder.cli.entry import main; main()"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "interrupted\n", "")


def test_it_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["rejoinder", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("rejoinder ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written(shop: str) -> None:
    command = [sys.executable, "-m", "rejoinder.cli.entry", "sql", shop, "SELECT * FROM priced"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "error: cannot write or read standard output: No space left" in done.stderr
    assert "Traceback" not in done.stderr
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
