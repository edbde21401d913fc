"""Conditions on the current time: rows enter and leave by the clock of the epochs, and their state goes with them."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver

LAST_TEN = "ts > current_timestamp() - INTERVAL 10 SECONDS"


def at(second: float) -> datetime:
    return datetime(2026, 1, 1) + timedelta(seconds=second)


def rows_of(driver: Driver, view: str) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in driver.table(view))


@pytest.mark.parametrize("parallelism", [1, 7])
@pytest.mark.parametrize("seed", range(3))
def test_a_view_equals_the_query_at_the_time_of_the_epoch(seed: int, parallelism: int) -> None:
    dice = random.Random(seed)
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE CHANGELOG t (k INT, ts TIMESTAMP)")
    driver.sql(f"CREATE VIEW last AS SELECT k, ts FROM t WHERE {LAST_TEN} AND k > 0")
    driver.sql(
        "CREATE VIEW counted AS SELECT k, COUNT(*) AS n FROM t WHERE ts BETWEEN now() - INTERVAL 5 SECONDS AND "
        "now() + INTERVAL 2 SECONDS GROUP BY k"
    )
    present: list[tuple[int, datetime | None]] = []
    now = 20.0
    for epoch in range(14):
        if epoch == 4:  # it shares the filter of `last`
            driver.sql(f"CREATE VIEW again AS SELECT ts FROM t WHERE {LAST_TEN} AND k > 0")
        if epoch == 7:
            driver.restart(parallelism=dice.choice([1, 3, 7]))
        for _ in range(dice.choice([0, 0, 3, 6])):
            if present and dice.random() < 0.3:
                k, ts = present.pop(dice.randrange(len(present)))
                driver.delete("t", {"k": k, "ts": ts})
            else:
                k, ts = dice.randrange(3), dice.choice([None, at(now + dice.randrange(-14, 9))])
                present.append((k, ts))
                driver.insert("t", {"k": k, "ts": ts})
        driver.step(at=at(now))
        timed = [(k, ts) for k, ts in present if ts is not None]
        last = Counter((k, ts) for k, ts in timed if ts > at(now - 10) and k > 0)
        assert rows_of(driver, "last") == last
        groups = Counter(k for k, ts in timed if at(now - 5) <= ts <= at(now + 2))
        assert rows_of(driver, "counted") == Counter(groups.items())
        if epoch >= 4:
            assert rows_of(driver, "again") == Counter((ts,) for _, ts in last.elements())
        assert Counter(map(str, driver.sql(f"SELECT k, ts FROM t WHERE {LAST_TEN} AND k > 0"))) == Counter(
            map(str, driver.table("last"))
        )
        now += dice.choice([0, 0.5, 1, 2, 4, 30])


def test_rows_that_have_left_are_kept_nowhere_in_the_filter() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM t (k INT, ts TIMESTAMP); CREATE VIEW v AS SELECT k FROM t WHERE {LAST_TEN}")
    for second in range(40):
        driver.insert("t", {"k": second, "ts": at(second)})
        driver.step(at=at(second))
    (pending,) = [row for row in driver.arrangements() if "/pending" in row["name"]]
    assert pending["rows"] <= 12
    assert len(list(driver.table("v"))) == 10


def test_explain_names_the_bound() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM t (k INT, ts TIMESTAMP); CREATE VIEW v AS SELECT k FROM t WHERE {LAST_TEN}")
    assert "by the clock of the epochs" in driver.sql("EXPLAIN v")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now() AS n FROM t",
        "SELECT k FROM t WHERE now() - ts < INTERVAL 1 HOUR",
        "SELECT k FROM t WHERE ts > now() OR k > 1",
        "SELECT k FROM t WHERE NOT ts > now()",
        "SELECT k FROM t WHERE ts = current_timestamp()",
        "SELECT k FROM t GROUP BY k HAVING max(ts) > now()",
        "SELECT a.k FROM t a JOIN t b ON a.ts > now() AND a.k = b.k",
    ],
)
def test_the_current_time_elsewhere_is_refused(query: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (k INT, ts TIMESTAMP)")
    with pytest.raises(Unsupported) as raised:
        driver.sql(f"CREATE VIEW v AS {query}")
    assert "WHERE" in (raised.value.hint or "")
