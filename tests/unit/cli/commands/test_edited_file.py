"""`rejoinder plan`, and `rejoinder run` on an edited file up to the point where Spark would start."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.cli.commands.edited_file import confirmed
from rejoinder.cli.commands.open_state import open_state
from rejoinder.cli.commands.script import read_script
from rejoinder.errors import DefinitionConflict
from rejoinder.sql.statements.statement_parser import CreateView
from rejoinder.testing import Driver
from tests.unit.cli.conftest import Rejoinder

FLOW = """
CREATE STREAM o (id BIGINT, c BIGINT);
CREATE TABLE c (c BIGINT PRIMARY KEY, n STRING);
CREATE VIEW v AS SELECT o.id, c.n FROM o JOIN c ON o.c = c.c WHERE o.id > 3;
CREATE VIEW w AS SELECT n, count(*) AS k FROM v GROUP BY n;
CREATE VIEW x AS SELECT id FROM o WHERE id = 1;
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state that has run the file, with a sink on `w` and a view of its own; and the file."""
    driver = Driver(store=tmp_path / "state" / "flow")
    driver.sql(FLOW)
    driver.sink("w", "parquet", name="out", path=str(tmp_path / "out"))
    driver.sql("CREATE VIEW own AS SELECT n FROM c")
    driver.insert("c", {"c": 1, "n": "x"})
    driver.insert("o", *({"id": i, "c": 1} for i in range(10)))
    driver.step()
    (tmp_path / "flow.sql").write_text(FLOW)
    return tmp_path / "state" / "flow"


def edit(folder: Path, old: str, new: str) -> Path:
    file = folder / "flow.sql"
    assert old in FLOW
    file.write_text(FLOW.replace(old, new))
    return file


def test_a_plan_shows_what_would_change(state: Path, tmp_path: Path, rejoinder: Rejoinder) -> None:
    edit(tmp_path, "o.id > 3", "o.id > 5")
    before = sorted(path for path in state.rglob("*") if path.is_file())
    result = rejoinder("plan", "flow.sql")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "commits epoch 1: the difference of replaced views"
    assert {"v replaced", "w replaced: it reads a replaced view", "x unchanged", "own unchanged"} <= set(lines)
    assert "out the difference of `w`" in lines
    assert any(line.startswith("o[") and "kept: 10 rows" in line for line in lines)
    assert "not in flow.sql, and kept: own" in result.output
    assert sorted(path for path in state.rglob("*") if path.is_file()) == before, "nothing is written"


def test_a_plan_of_the_same_file_is_empty(state: Path, rejoinder: Rejoinder) -> None:
    result = rejoinder("plan", "flow.sql")
    assert result.exit_code == 0 and "nothing changes" in result.output
    assert "replaced" not in result.output


def test_a_plan_names_what_is_refused(state: Path, tmp_path: Path, rejoinder: Rejoinder) -> None:
    edit(tmp_path, "o.id, c.n FROM", "o.id FROM")
    result = rejoinder("plan", "flow.sql")
    assert result.exit_code == 1
    assert "there is no column `n`" in result.output and "flow.sql:5" in result.output
    edit(tmp_path, "count(*) AS k", "count(*) AS other")
    assert "sink `out` reads `w`, whose columns would change" in rejoinder("plan", "flow.sql").output


def test_a_plan_of_a_new_state_lists_new_views(tmp_path: Path, rejoinder: Rejoinder) -> None:
    (tmp_path / "flow.sql").write_text(FLOW)
    result = rejoinder("plan", "flow.sql")
    assert result.exit_code == 0 and [" ".join(line.split()) for line in result.stdout.splitlines()][1] == "v new"
    assert not (tmp_path / "state").exists()


def test_an_edited_file_needs_a_confirmation(state: Path, tmp_path: Path, rejoinder: Rejoinder) -> None:
    file = edit(tmp_path, "o.id > 3", "o.id > 5")
    script, engine = read_script(file), open_state(str(state))
    with pytest.raises(DefinitionConflict, match="`v` differs from the definition stored in this state") as refused:
        confirmed(script, engine, is_confirmed=False)
    assert "--yes replaces it" in str(refused.value.hint)
    views = [s for s in confirmed(script, engine, is_confirmed=True).definitions if isinstance(s, CreateView)]
    assert [view.name for view in views if view.or_replace] == ["v"]
    result = rejoinder("run", "flow.sql")
    assert result.exit_code == 1 and "--yes replaces it" in result.output


def test_explain_shows_what_a_definition_would_change(state: Path, rejoinder: Rejoinder) -> None:
    text = "CREATE OR REPLACE VIEW x AS SELECT id FROM o WHERE id = 2"
    result = rejoinder("explain", str(state), text)
    assert result.exit_code == 0 and "replaced" in result.output, result.output
    driver = Driver(store=state)
    assert driver.sql(f"EXPLAIN {text}").splitlines()[0] == "commits epoch 1: the difference of replaced views"
    assert [row["id"] for row in driver.table("x")] == [1]
    dropped = driver.sql("EXPLAIN DROP VIEW own")
    assert any(line.split() == ["own", "dropped"] for line in dropped.splitlines())
