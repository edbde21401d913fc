"""Caps on the rows and bytes of one epoch: named before anything is committed; what is filled does not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoinder.errors import LimitReached
from rejoinder.host.caps import Caps, use_caps
from rejoinder.testing import Driver


@pytest.fixture(autouse=True)
def usual_caps() -> Iterator[None]:
    yield
    use_caps(Caps())


def _driver(path: Path, **caps: int) -> Driver:
    driver = Driver(store=path / "state", caps=caps)
    (path / "in").mkdir(exist_ok=True)
    driver.sql(
        f"CREATE STREAM t (a BIGINT) USING json OPTIONS (path '{path}/in'); CREATE STREAM u (a BIGINT); "
        "CREATE VIEW v AS SELECT a FROM t UNION ALL SELECT a FROM u"
    )
    return driver


def _write(path: Path, name: str, rows: int) -> None:
    (path / "in" / name).write_text("".join(f'{{"a": {n}}}\n' for n in range(rows)))


@pytest.mark.parametrize(("cap", "most"), [("max_epoch_rows", 100), ("max_epoch_bytes", 800)])
def test_an_epoch_that_reads_too_much_is_not_committed(tmp_path: Path, cap: str, most: int) -> None:
    driver = _driver(tmp_path, **{cap: most})
    _write(tmp_path, "0.json", 60)
    _write(tmp_path, "1.json", 41)
    with pytest.raises(LimitReached, match=f"epoch 0 reads too many .*{cap}|{cap}") as stopped:
        driver.step()
    error = stopped.value
    assert "of `t`" in str(error.detail) and "1.json" in str(error.detail) and "maxFilesPerTrigger" in str(error.hint)
    assert driver.epoch == -1
    driver = Driver(store=tmp_path / "state", caps={cap: 2 * most})
    driver.step()
    assert len(driver.table("v")) == 101


def test_sources_count_together(tmp_path: Path) -> None:
    driver = _driver(tmp_path, max_epoch_rows=100)
    _write(tmp_path, "0.json", 60)
    driver.insert("u", *({"a": n} for n in range(41)))
    with pytest.raises(LimitReached, match="epoch 0 reads too many rows"):
        driver.step()


def test_a_new_view_may_be_filled_with_more_rows_than_an_epoch_may_read(tmp_path: Path) -> None:
    driver = _driver(tmp_path, max_epoch_rows=100)
    for number in range(3):
        _write(tmp_path, f"{number}.json", 60)
        driver.step()
    driver.sql("CREATE VIEW w AS SELECT a, count(*) AS n FROM t GROUP BY a")
    assert len(driver.table("w")) == 60 and len(driver.sql("SELECT a FROM t")) == 180
