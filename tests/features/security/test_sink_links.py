"""What a file sink keeps for itself is not reached through links, and formulas do not reach its CSV files."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest

from rejoinder.errors import SinkFailed
from rejoinder.testing import Driver


def _sink(folder: Path) -> Driver:
    driver = Driver()
    driver.sql("CREATE STREAM s (a STRING); CREATE VIEW v AS SELECT a AS `\t=cmd` FROM s")
    driver.sql(f"CREATE SINK k FROM v USING csv OPTIONS (path '{folder}')")
    return driver


@pytest.mark.parametrize("name", ["", "staged-0000000000-x", "progress.json", "sink.json"])
def test_links_are_refused(tmp_path: Path, name: str) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.mkdir()
    (victim / "kept").write_text("kept")
    driver = _sink(out)
    link = out / "_rejoinder" / name
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    os.symlink(victim if not name.endswith("json") else victim / "kept", link)
    driver.insert("s", {"a": "x"})
    with pytest.raises(SinkFailed, match="does not follow the symbolic link"):
        driver.step()
    assert os.listdir(victim) == ["kept"] and (victim / "kept").read_text() == "kept"
    assert not list(out.glob("*.csv"))


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "out")
    driver = _sink(tmp_path / "out")
    driver.insert("s", {"a": "x"})
    driver.step()
    assert list((tmp_path / "real").glob("*.csv"))


FORMULAS = ["=1", "+1+1", "-x", "@x", "\t=1", "\r=1", " =1", "＝1", "＋x", "－x", "＠x", "﹦1", "\ufeff=1", "\u200b=1"]


def test_no_formula_is_at_the_beginning_of_a_field_or_of_a_name(tmp_path: Path) -> None:
    driver = _sink(tmp_path / "out")
    driver.insert("s", *({"a": text} for text in [*FORMULAS, "-12.5", "plain"]))
    driver.step()
    (path,) = (tmp_path / "out").glob("*.csv")
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines(keepends=True))
    fields = [row[0] for row in rows]
    assert header[0].startswith("'") and "-12.5" in fields and "plain" in fields
    others = set(fields) - {"-12.5", "plain"}
    assert len(others) >= len(FORMULAS) - 1 and all(field[0] in "'\ufffd" for field in others)
