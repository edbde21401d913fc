"""`rejoinder run` up to the point where Spark would start: files, definitions, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.cli.commands.run_flow import check
from rejoinder.cli.commands.script import read_script
from rejoinder.cli.spark_options import Settings, memory_size, settings_of
from rejoinder.errors import DefinitionConflict
from rejoinder.ir.catalog import Catalog
from tests.unit.cli.conftest import Rejoinder

FLOW = """
CREATE STREAM orders (id BIGINT, item STRING) USING json OPTIONS (path '{path}');
CREATE VIEW big AS SELECT id FROM orders WHERE id > 100; -- a comment
SELECT * FROM big;
"""


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A file of statements whose input folder exists."""
    (tmp_path / "in").mkdir()
    file = tmp_path / "flow.sql"
    file.write_text(FLOW.format(path=tmp_path / "in"), encoding="utf-8")
    return file


def changed(file: Path, old: str, new: str) -> Path:
    """The file with one text replaced by another."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return file


def test_the_same_definitions_are_recognised(flow: Path) -> None:
    catalog = check(read_script(flow), Catalog())
    assert [relation.name for relation in catalog.relations] == ["orders", "big"]
    assert check(read_script(flow), catalog) == catalog
    respaced = changed(flow, "SELECT id FROM orders", "select  id\n  from orders")
    assert check(read_script(respaced), catalog) == catalog


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("id > 100", "id > 1", "`big`"),
        ("CREATE VIEW big", "CREATE VIEW IF NOT EXISTS big", ""),
        ("item STRING", "item BIGINT", "`orders`"),
        ("CREATE STREAM orders (", "CREATE TABLE orders (PRIMARY KEY (id), ", "`orders`"),
        ("OPTIONS (", "OPTIONS (malformed 'divert', ", "`orders`"),
    ],
)
def test_another_text_is_an_error_once_rows_are_committed(flow: Path, old: str, new: str, named: str) -> None:
    catalog = check(read_script(flow), Catalog())
    script = read_script(changed(flow, old, new))
    if not named:
        assert check(script, catalog, {"orders"}) == catalog
        return
    with pytest.raises(DefinitionConflict, match=f"{named} differs from the definition stored in this state"):
        check(script, catalog, {"orders"})
    assert check(script, catalog, {"customers"}) == check(script, Catalog())


def test_a_missing_file(rejoinder: Rejoinder, flow: Path) -> None:
    result = rejoinder("run", "flw.sql")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: cannot read `flw.sql`: No such file or directory  [RJ203]",
        "Hint: there is flow.sql",
    ]


def test_a_file_that_is_no_text(rejoinder: Rejoinder, tmp_path: Path) -> None:
    (tmp_path / "flow.sql").write_bytes(b"\xff\xfe\x00")
    assert "it is not UTF-8 text" in rejoinder("run", "flow.sql").stderr
    (tmp_path / "flow.sql").write_text("-- nothing yet")
    assert "has no statements" in rejoinder("run", "flow.sql").stderr


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("WHERE id", "WHERE idd", "there is no column `idd`"),
        ("CREATE VIEW", "CREATE VEIW", "CREATE VEIW is not known"),
        ("/in'", "/nowhere'", "does not exist"),
        ("item STRING)", "item STRING, WATERMARK id)", "the watermark of `orders`.`id` would never advance"),
    ],
)
def test_what_is_wrong_shows_before_spark_starts(
    rejoinder: Rejoinder, flow: Path, old: str, new: str, fact: str
) -> None:
    result = rejoinder("run", str(changed(flow, old, new)), "--state", "nothing-made")
    assert result.exit_code == 1
    assert fact in result.stderr
    assert not Path("nothing-made").exists()


def test_options_are_checked(rejoinder: Rejoinder, flow: Path) -> None:
    assert rejoinder("run", str(flow), "--interval", "5 fortnights").exit_code == 2
    assert rejoinder("run", str(flow), "--parallelism", "0").exit_code == 2
    assert "only a view can be watched" in rejoinder("run", str(flow), "--watch", "orders").stderr
    assert "there is no relation `bigg`" in rejoinder("run", str(flow), "--watch", "bigg").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--memory", "3"], "`3` is not a size of memory"),
        (["--memory", "100m"], "Spark needs at least 512m"),
        (["--conf", "spark.ui.enabled"], "`spark.ui.enabled` has no value"),
        (["--conf", "ui=true"], "`ui` is not a setting of Spark"),
        (["--conf", "spark.a=1", "--conf", "spark.a=2"], "`spark.a` is set twice"),
        (["--memory", "1g", "--conf", "spark.driver.memory=2g"], "contradict each other"),
        (["--history", "0"], "--history"),
    ],
)
def test_options_of_spark_are_checked(rejoinder: Rejoinder, flow: Path, options: list[str], said: str) -> None:
    result = rejoinder("run", str(flow), *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_options_of_spark_are_read() -> None:
    settings = settings_of(3, 7, memory_size("800MB"), ["spark.ui.enabled=true", "spark.x=a=b"])
    assert settings == Settings(3, 7, "800m", {"spark.ui.enabled": "true", "spark.x": "a=b"})
    assert settings_of(None, None, None, None) == Settings() and settings.cores == 3


def test_an_unexpected_error_is_no_traceback(rejoinder: Rejoinder, flow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("the row of Ada")

    monkeypatch.setattr("rejoinder.cli.commands.run_flow.read_script", fail)
    result = rejoinder("run", str(flow))
    assert result.exit_code == 1
    assert "error: unexpected KeyError  [RJ000]" in result.stderr
    assert "Traceback" not in result.stderr and "Ada" not in result.stderr
    assert "Ada" in rejoinder("run", str(flow), "--show-values").stderr
    assert "Traceback" in rejoinder("run", str(flow), "--debug").stderr


def test_an_error_shows_its_line_with_a_caret(rejoinder: Rejoinder, flow: Path) -> None:
    result = rejoinder("run", str(changed(flow, "WHERE id >", "WHERE idd >")))
    lines = result.stderr.splitlines()
    assert lines[1:4] == [
        f"  {flow}:3:48",
        "  3 │ CREATE VIEW big AS SELECT id FROM orders WHERE idd > 100; -- a comment",
        "    │ " + " " * 47 + "^^^",
    ]
    result = rejoinder("sql", "none", "CREATE STREAM s (k INT);\nCREATE VIEW v AS SELECT kk FROM s")
    assert result.stderr.splitlines()[1:4] == [
        "  line 2:25",
        "  2 │ CREATE VIEW v AS SELECT kk FROM s",
        "    │ " + " " * 24 + "^^",
    ]


def test_a_state_that_cannot_be_written_is_refused_before_spark_starts(
    rejoinder: Rejoinder, flow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("text")
    result = rejoinder("run", str(flow), "--state", "file/state")
    assert result.exit_code == 1 and f"`{tmp_path}/file` is not a folder" in result.stderr
    monkeypatch.setattr("rejoinder.cli.commands.writable_state._may_write", lambda folder: False)
    result = rejoinder("run", str(flow), "--state", "sealed")
    assert result.exit_code == 1 and f"`{tmp_path}` is not writable" in result.stderr


def test_only_a_view_can_be_watched(rejoinder: Rejoinder, flow: Path) -> None:
    result = rejoinder("run", str(flow), "--watch", "orders")
    assert result.exit_code == 1 and "`orders` is a source: only a view can be watched" in result.stderr
    assert "Hint: views: " in result.stderr
