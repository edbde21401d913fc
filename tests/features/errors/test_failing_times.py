"""Deleted rows raise no error in joins as of a time, in windows and with EMIT FINAL either."""

from __future__ import annotations

from datetime import datetime

import pytest

from rejoinder.errors import EvaluationError
from rejoinder.testing import Driver
from tests.kit import rows


def test_as_of() -> None:
    driver = Driver(parallelism=3)
    driver.sql("CREATE STREAM o (id INT, cur STRING, ts TIMESTAMP)")
    driver.sql("CREATE CHANGELOG r (cur STRING, per INT, ts TIMESTAMP)")
    driver.sql(
        "CREATE VIEW v AS SELECT o.id, 100 DIV r.per AS q FROM o ASOF JOIN r "
        "MATCH_CONDITION (o.ts >= r.ts) ON o.cur = r.cur"
    )
    bad = {"cur": "EUR", "per": 0, "ts": datetime(2020, 1, 2)}
    driver.insert("r", {"cur": "EUR", "per": 5, "ts": datetime(2020, 1, 1)}, bad)
    driver.step()
    driver.delete("r", bad)
    driver.step()
    driver.insert("o", {"id": 1, "cur": "EUR", "ts": datetime(2020, 1, 3)})
    driver.step()
    assert rows(driver) == [(1, 20)]
    driver.insert("r", bad)
    driver.insert("r", {"cur": "EUR", "per": 4, "ts": datetime(2020, 1, 2, 1)})
    driver.step()
    assert rows(driver) == [(1, 25)]
    driver.insert("r", {**bad, "ts": datetime(2020, 1, 2, 2)})
    with pytest.raises(EvaluationError, match="100 DIV"):
        driver.step()


def test_emit_final() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG e (b INT, ts TIMESTAMP, WATERMARK FOR ts DELAY OF INTERVAL 0 SECONDS)")
    driver.sql(
        "CREATE VIEW v AS SELECT window.start AS s, SUM(10 DIV b) AS q FROM e GROUP BY window(ts, '1 hour') EMIT FINAL"
    )
    bad = {"b": 0, "ts": datetime(2020, 1, 1, 0, 10)}
    driver.insert("e", {"b": 2, "ts": datetime(2020, 1, 1, 0, 5)}, bad)
    driver.delete("e", bad)
    driver.step()
    driver.insert("e", {"b": 1, "ts": datetime(2020, 1, 1, 5)})
    driver.step()
    assert [row["q"] for row in driver.table("v")] == [5]


@pytest.mark.parametrize("join", ["LEFT ANTI JOIN", "LEFT JOIN"])
def test_when_a_row_is_final_does_not_depend_on_a_condition_that_fails(join: str) -> None:
    driver = Driver()
    for name in "lr":
        driver.sql(f"CREATE STREAM {name} (a INT, b INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS)")
    driver.sql(
        f"CREATE VIEW v AS SELECT l.a, l.b FROM l {join} r ON l.a = r.a AND 10 DIV l.b > 1 "
        "AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 1 HOUR EMIT FINAL"
    )
    driver.insert("l", {"a": 1, "b": 0, "ts": datetime(2020, 1, 1)})
    driver.step()  # no pair, so nothing fails
    for name in "lr":
        driver.insert(name, {"a": 2, "b": 1, "ts": datetime(2020, 1, 1, 5)})
    driver.step()
    assert (1, 0) in rows(driver)
