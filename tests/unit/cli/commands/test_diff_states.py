"""`rejoinder diff`: two epochs of a state, two states, other columns, missing views, and slices of large views."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.engine.maintenance import state_diff
from rejoinder.engine.maintenance.state_diff import Side, compared
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver
from tests.unit.cli.conftest import Rejoinder

SOURCE = "CREATE CHANGELOG t (k INT, x INT)"


def state(place: Path, *views: str, rows: int = 3) -> str:
    driver = Driver(store=place, parallelism=3)
    driver.sql("; ".join([SOURCE, *views]))
    driver.insert("t", *({"k": k, "x": k % 2} for k in range(rows)))
    driver.step()
    driver.insert("t", {"k": 0, "x": 0})
    driver.delete("t", {"k": 1, "x": 1})
    driver.step()
    return str(place)


def test_two_epochs_of_one_state(tmp_path: Path, rejoinder: Rejoinder) -> None:
    place = state(tmp_path / "a", "CREATE VIEW v AS SELECT k FROM t", "CREATE VIEW n AS SELECT x FROM t WHERE k > 1")
    result = rejoinder("diff", place, "--as-of", "0")
    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    assert " ".join(lines[2]) == "v: 3 and 3 rows; 1 only in the first, 1 only in the second"
    assert lines[3:5] == [["−", "1"], ["+", "0"]]
    assert " ".join(lines[5]) == "n: equal, 1 rows"


def test_two_equal_states(tmp_path: Path, rejoinder: Rejoinder) -> None:
    """The views have other texts, and their states another parallelism."""
    first = state(tmp_path / "a", "CREATE VIEW v AS SELECT k, x FROM t WHERE k >= 0")
    driver = Driver(store=tmp_path / "b", parallelism=1)
    driver.sql(f"{SOURCE}; CREATE VIEW v AS SELECT k, x FROM t")
    driver.insert("t", {"k": 0, "x": 0}, {"k": 0, "x": 0}, {"k": 2, "x": 0})
    driver.step()
    result = rejoinder("diff", first, str(tmp_path / "b"))
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "v: equal, 3 rows")


def test_copies_of_a_row_count(tmp_path: Path) -> None:
    place = open_store(state(tmp_path / "a", "CREATE VIEW v AS SELECT 1 AS one FROM t WHERE x = 0"))
    (difference,) = compared(Side.open(place, 0), Side.open(place))
    assert (difference.rows, difference.only) == ((2, 3), (0, 1))
    assert difference.samples == (({"one": 1}, 1),)


def test_what_cannot_be_compared(tmp_path: Path, rejoinder: Rejoinder) -> None:
    views = "CREATE VIEW v AS SELECT k FROM t", "CREATE VIEW w AS SELECT k FROM t"
    first = state(tmp_path / "a", *views)
    second = state(tmp_path / "b", "CREATE VIEW v AS SELECT CAST(k AS BIGINT) AS k, x FROM t")
    result = rejoinder("diff", first, second)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        "v: other columns (first: k int; second: k bigint, x int)",
        "w: only the first state has it",
    ]


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--view", "vv"], "no state has a view `vv`"),
        (["--as-of", "9"], "epoch 9 is not committed yet"),
        (["nowhere"], "there is no state in"),
    ],
)
def test_bad_input(tmp_path: Path, rejoinder: Rejoinder, arguments: list[str], fact: str) -> None:
    place = state(tmp_path / "a", "CREATE VIEW v AS SELECT k FROM t")
    result = rejoinder("diff", place, *(str(tmp_path / "no") if part == "nowhere" else part for part in arguments))
    assert result.exit_code == 1
    assert fact in result.stderr


def test_a_large_view_is_compared_slice_by_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = open_store(state(tmp_path / "a", "CREATE VIEW v AS SELECT k, x FROM t", rows=400))
    whole = list(compared(Side.open(place, 0), Side.open(place), samples=0))
    monkeypatch.setattr(state_diff, "SLICE_ROWS", 50)
    assert list(compared(Side.open(place, 0), Side.open(place), samples=0)) == whole
    assert whole[0].only == (1, 1) and whole[0].rows == (400, 400)
