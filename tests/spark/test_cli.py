"""The command line on Spark: the README as a new user types it, an error, following until Ctrl-C, the demonstration."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from rejoinder.cli.main import app

README = Path(__file__).parents[2] / "README.md"
REJOINDER = [sys.executable, "-m", "rejoinder.cli.main"]
SECONDS = 90


def block(language: str) -> str:
    """The README's block of a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(found[-1])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the README's statements."""
    monkeypatch.chdir(tmp_path)
    Path("shop.sql").write_text(block("sql"), encoding="utf-8")
    return tmp_path


@pytest.fixture
def rejoinder(spark: SparkSession) -> Callable[[str], Result]:
    """Call the command line in this process, on the session of all tests."""
    return lambda line: CliRunner().invoke(app, shlex.split(line)[1:])


def test_a_query_without_a_view_reads_its_source(here: Path, rejoinder: Callable[[str], Result]) -> None:
    Path("data").mkdir()
    Path("data/a.json").write_text('{"id": 1}\n{"id": 2}\n')
    create = "CREATE STREAM f (id INT) USING json OPTIONS (path 'data', cleanSource 'delete');"
    Path("ask.sql").write_text(f"{create} SELECT sum(id) AS total FROM f; SELECT STREAM id FROM f")
    result = rejoinder("rejoinder run ask.sql --state st")
    assert (result.exit_code, result.stdout.split()[2]) == (0, "3"), result.output
    assert "no input yet" not in result.stderr
    assert [path.name for path in Path("data").iterdir()] == ["a.json"]
    left = {path.parts[1] for path in Path("st").rglob("*") if path.is_file()}
    assert left <= {"flow.json", "manifests"}, "nothing but the definition of the source is kept"
    asked = rejoinder("rejoinder sql st 'SELECT count(*) AS n FROM f'")
    assert (asked.exit_code, asked.stdout.split()[2]) == (0, "2"), asked.output
    Path("data/b.json").write_text('{"id": 5}\n')
    Path("kept.sql").write_text(f"{create} CREATE VIEW v AS SELECT sum(id) AS total FROM f; SELECT total FROM v")
    kept = rejoinder("rejoinder run kept.sql --state st")
    assert (kept.exit_code, kept.stdout.split()[2]) == (0, "8"), kept.output


def test_the_readme(here: Path, rejoinder: Callable[[str], Result], capfd: pytest.CaptureFixture[str]) -> None:
    results = []
    for line in filter(None, block("sh").splitlines()):
        if line.startswith("rejoinder "):
            results.append(rejoinder(line))
        else:
            subprocess.run(line, shell=True, check=True)
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert "new state in state/shop" in results[0].stderr
    assert "caught up at epoch 0: 1 epoch" in results[0].stderr
    assert "resumed after epoch 0" in results[1].stderr
    rows = [line.split() for line in results[2].stdout.splitlines()[2:-1]]
    assert [(*row[:5], row[-1]) for row in rows] == [
        ("10", "9.50", "Ada", "UK", "0", "false"),
        ("10", "9.50", "Ada", "UK", "1", "true"),
        ("10", "9.50", "Ada", "PT", "1", "false"),
    ]
    exec(compile(block("python"), "README.md", "exec"), {})  # noqa: S102 - our own text
    shown = capfd.readouterr().out
    assert "| 10| Ada|" in shown and "shared with sales" in shown


def test_an_error_in_an_epoch_and_the_run_after_it(here: Path, rejoinder: Callable[[str], Result]) -> None:
    for source in ("orders", "customers"):
        (here / "data" / source).mkdir(parents=True)
    bad = here / "data" / "orders" / "bad.json"
    bad.write_text('{"id": oops')
    (here / "data" / "customers" / "1.json").write_text('{"id": 1, "name": "Ada", "country": "UK"}\n')
    failed = rejoinder("rejoinder run shop.sql")
    assert failed.exit_code == 1
    # What comes before is the log of the JVM, which all tests share; a JVM of the command's own is silent.
    assert [line.split(":")[0] for line in failed.stderr.splitlines()[-4:]] == ["error", "Detail", "Values", "Hint"]
    assert "fix the line" in failed.stderr
    assert not (here / "state").exists()
    text = (here / "shop.sql").read_text(encoding="utf-8")
    (here / "shop.sql").write_text(text.replace("id BIGINT, customer", "id INT, customer"), encoding="utf-8")
    bad.write_text('{"id": 10, "customer": 1, "amount": 1.25}\n')
    with (here / "shop.sql").open("a", encoding="utf-8") as file:
        file.write("SELECT id, amount, name FROM sales;\n")
    fixed = rejoinder("rejoinder run shop.sql")
    assert fixed.exit_code == 0
    assert fixed.stdout.splitlines()[2].split() == ["10", "1.25", "Ada"]


def test_definitions_change_freely_until_rows_are_committed(here: Path, rejoinder: Callable[[str], Result]) -> None:
    for source in ("orders", "customers"):
        (here / "data" / source).mkdir(parents=True)
    assert rejoinder("rejoinder run shop.sql").exit_code == 0
    text = (here / "shop.sql").read_text(encoding="utf-8")
    (here / "shop.sql").write_text(text.replace("o.amount", "o.amount * 2 AS amount"), encoding="utf-8")
    (here / "data" / "orders" / "1.json").write_text('{"id": 10, "customer": 1, "amount": 1.25}\n')
    (here / "data" / "customers" / "1.json").write_text('{"id": 1, "name": "Ada", "country": "UK"}\n')
    changed = rejoinder("rejoinder run shop.sql")
    assert changed.exit_code == 0
    assert "replaced `sales`: no row of its sources was committed yet" in changed.stderr
    assert changed.stderr.count("column `ts` of `orders` is NULL in every record") == 1, "said once"
    asked = CliRunner().invoke(app, ["sql", "state/shop", "SELECT amount FROM sales", "--format", "csv"])
    assert asked.stdout == "amount\n2.50\n"
    (here / "shop.sql").write_text(text, encoding="utf-8")
    refused = rejoinder("rejoinder run shop.sql")
    assert refused.exit_code == 1 and "`sales` differs from the definition stored in this state" in refused.stderr


def test_follow_until_ctrl_c(here: Path) -> None:
    for source in ("orders", "customers"):
        (here / "data" / source).mkdir(parents=True)
    (here / "data" / "customers" / "1.json").write_text('{"id": 1, "name": "Ada", "country": "UK"}\n')
    command = [*REJOINDER, "run", "shop.sql", "--follow", "--watch", "sales", "--parallelism", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            (here / "data" / "orders" / "1.json").write_text('{"id": 10, "customer": 1, "amount": 9.50}\n')
            shown = process.stdout.readline() + process.stdout.readline()
            (here / "data" / "customers" / "2.json").write_text('{"id": 1, "name": "Ada", "country": "PT"}\n')
            shown += "".join(process.stdout.readline() for _ in range(3))
            process.send_signal(signal.SIGINT)
            rest, told = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert [line for line in lines if line[0] in "+−"] == [
        "+ 10 9.50 Ada UK",
        "− 10 9.50 Ada UK",
        "+ 10 9.50 Ada PT",
    ]
    assert (process.returncode, rest) == (0, "")
    assert "stopping after this epoch" in told and "stopped at epoch" in told
    assert "WARN" not in told and "Traceback" not in told and "Exception" not in told


def test_the_demonstration(here: Path) -> None:
    start = time.monotonic()
    done = subprocess.run([*REJOINDER, "demo"], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Ada Allen moves to Turin\n  1 row in; 3 retracted, 3 added" in done.stdout
    assert "The table now" in done.stdout and "changes of customers" in done.stdout
    assert time.monotonic() - start < SECONDS
    following = next(line for line in done.stdout.splitlines() if " sql " in line and "STREAM" in line)
    asked = CliRunner().invoke(app, shlex.split(following)[1:])
    assert asked.exit_code == 0 and "changes; --limit 0 shows all)" in asked.stdout
