"""Sessions of a stream with a watermark: they go on, end, and are emitted once."""

from __future__ import annotations

from rejoinder.testing import Driver
from tests.kit import at, flow, kept, rows

CLICKS = "CREATE STREAM clicks (page STRING, t TIMESTAMP, WATERMARK t DELAY OF INTERVAL 1 MINUTE)"
SESSIONS = """
    SELECT page, COUNT(*) AS n, MIN(t) AS first, MAX(t) AS last
    FROM clicks GROUP BY page, session_window(t, '5 minutes')
"""


def click(driver: Driver, *minutes: int, page: str = "tea") -> None:
    driver.insert("clicks", *({"page": page, "t": at(minute)} for minute in minutes))


def test_a_session_that_goes_on_outlives_the_rows_that_it_began_with() -> None:
    driver = flow(CLICKS, SESSIONS)
    for minute in range(0, 40, 4):
        click(driver, minute, minute + 1)
        driver.step()
        assert rows(driver) == [("tea", minute // 2 + 2, at(0), at(minute + 1))]
    assert kept(driver)["clicks#on-time"] == 0
    assert max(kept(driver).values()) <= 8


def test_a_session_that_ended_is_not_continued() -> None:
    driver = flow(CLICKS, SESSIONS)
    click(driver, 0, 3)
    driver.step()
    click(driver, 20)
    driver.step()
    click(driver, 21)
    driver.step()
    assert rows(driver) == [("tea", 2, at(0), at(3)), ("tea", 2, at(20), at(21))]


def test_a_final_session_is_emitted_once() -> None:
    driver = flow(CLICKS, f"{SESSIONS} EMIT FINAL")
    for minute in (0, 4, 8):
        click(driver, minute)
        assert driver.step()["v"] == []
    click(driver, 30)
    assert [(*row.values(), diff) for row, diff in driver.step()["v"]] == [("tea", 3, at(0), at(8), 1)]
    click(driver, 5)
    assert driver.step()["v"] == []
    assert len(driver.late("v")) == 1
