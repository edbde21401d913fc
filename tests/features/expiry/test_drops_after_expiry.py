"""DROP needs no rows of the past: a source whose rows are gone is no longer kept for later views, and says so."""

from __future__ import annotations

from datetime import datetime

import pytest

from rejoinder.errors import Incomplete, MissingInput
from rejoinder.ir.catalog import Source
from rejoinder.state.positions import Position
from rejoinder.testing import Driver

STREAM = """CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)
  USING kafka OPTIONS (topic 'c', bootstrap 'b:9', format 'json')"""
BOUNDED = """CREATE VIEW bounded AS SELECT a.k FROM s a JOIN s b
  ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 10 MINUTES"""


def expired() -> Driver:
    """A flow that has let rows of `s` expire, and a view that begins after them."""
    driver = Driver()
    driver.sql(f"{STREAM}; {BOUNDED}")
    for hour in range(3):
        driver.insert("s", {"k": hour, "ts": datetime(2026, 1, 1, hour)})
        driver.step()
    driver.sql("CREATE VIEW later STARTING AT NOW AS SELECT k FROM s")
    return driver


@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_bounded_view_can_be_dropped(is_restarted: bool) -> None:
    driver = expired()
    driver.sql("DROP VIEW bounded")
    if is_restarted:
        driver.restart(parallelism=2)
    driver.insert("s", {"k": 7, "ts": datetime(2026, 1, 1, 5)})
    assert driver.step() == {"later": [({"k": 7}, 1)]}
    with pytest.raises(Incomplete, match="needs rows of `s` that are no longer kept"):
        driver.sql("CREATE VIEW counted AS SELECT count(*) AS n FROM s")
    with pytest.raises(Incomplete):
        driver.sql("SELECT count(*) AS n FROM s")


def test_the_same_definition_is_still_the_same() -> None:
    driver = expired()
    driver.sql("DROP VIEW bounded")
    driver.sql(STREAM.replace("CREATE STREAM", "CREATE STREAM IF NOT EXISTS"))
    driver.sql(BOUNDED.replace("CREATE VIEW bounded", "CREATE VIEW again STARTING AT NOW"))
    driver.insert("s", {"k": 1, "ts": datetime(2026, 1, 1, 6)}, {"k": 1, "ts": datetime(2026, 1, 1, 6, 5)})
    assert driver.step()["again"] == [({"k": 1}, 1)]


def test_a_broker_that_does_not_answer_makes_no_source_incomplete() -> None:
    """Whether its records can be read again is not known then, so the statement fails."""
    driver = expired()
    driver._engine.topics = Silent()  # type: ignore[assignment]
    with pytest.raises(MissingInput, match="no broker answers"):
        driver.sql("DROP VIEW bounded")
    source = driver.catalog.get("s")
    assert isinstance(source, Source) and not source.incomplete and driver.catalog.find("bounded") is not None
    driver._engine.topics = None
    driver.sql("DROP VIEW bounded")


class Silent:
    """A reader of topics whose broker does not answer."""

    def unreadable(self, source: Source, position: Position) -> str | None:
        raise MissingInput("no broker answers")
