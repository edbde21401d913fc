"""The cap on pairs counts rows that are present: deleted rows in the runs of an arrangement do not count."""

from __future__ import annotations

import pytest

from rejoinder.errors import LimitReached
from rejoinder.testing import Driver
from tests.kit import rows

VIEWS = (
    "SELECT o.id, r.n FROM o JOIN r ON o.k = r.k",
    "SELECT o.id, r.n FROM o CROSS JOIN r",
    "SELECT o.id, r.n FROM o LEFT JOIN r ON o.k = r.k AND o.id < r.n",
    "SELECT o.id FROM o LEFT SEMI JOIN r ON o.k = r.k AND o.id < r.n",
)


def flow_after_deletes(view: str, gone: int) -> Driver:
    driver = Driver(max_pairs=100)
    driver.sql("CREATE STREAM o (id INT, k INT); CREATE CHANGELOG r (k INT, n INT)")
    driver.sql(f"CREATE VIEW v AS {view}")
    some = [{"k": 1, "n": 5 + number} for number in range(150)]
    driver.insert("r", *some)
    driver.step()
    driver.delete("r", *some[:gone])
    driver.step()
    return driver


@pytest.mark.parametrize("view", VIEWS)
def test_deleted_rows_do_not_count(view: str) -> None:
    driver = flow_after_deletes(view, gone=149)
    driver.insert("o", {"id": 1, "k": 1})
    driver.step()
    assert len(rows(driver)) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_present_rows_count(view: str) -> None:
    driver = flow_after_deletes(view, gone=49)
    driver.insert("o", {"id": 1, "k": 1})
    with pytest.raises(LimitReached, match=r"pairs 101 rows in one step, and the limit is 100"):
        driver.step()


def test_a_product_of_deleted_rows_can_be_defined() -> None:
    driver = flow_after_deletes(VIEWS[0], gone=149)
    driver.insert("o", {"id": 1, "k": 1})
    driver.step()
    driver.sql("CREATE VIEW w AS SELECT o.id, r.n FROM o CROSS JOIN r")
    assert len(driver.table("w")) == 1


def test_however_they_are_spread_over_runs() -> None:
    driver = flow_after_deletes(VIEWS[0], gone=100)
    driver.insert("r", *[{"k": 1, "n": -number} for number in range(60)])
    driver.step()
    driver.insert("o", {"id": 1, "k": 1})
    with pytest.raises(LimitReached, match=r"pairs 110 rows"):
        driver.step()
