"""SHOW describes pending changes: for the clock, for watermarks, and none once all are emitted."""

from __future__ import annotations

from datetime import datetime

from rejoinder.engine.status.pending_changes import pending_views
from rejoinder.testing import Driver


def test_who_waits_for_what() -> None:
    driver = Driver()
    driver.sql(
        "CREATE STREAM a (id INT, ts TIMESTAMP, WATERMARK ts); CREATE STREAM b (id INT, ts TIMESTAMP, WATERMARK ts);"
        "CREATE VIEW every AS SELECT id FROM a EMIT EVERY INTERVAL 10 SECONDS;"
        "CREATE VIEW past AS SELECT id FROM a EMIT WHEN WATERMARK PAST ts;"
        "CREATE VIEW both AS SELECT a.id FROM a JOIN b ON a.id = b.id EMIT WHEN WATERMARK PAST b.ts;"
        "CREATE VIEW plain AS SELECT id FROM a"
    )
    assert pending_views(driver._engine) == {}
    times = [datetime(2024, 1, 1, 12, 0, second) for second in (0, 30)]
    driver.insert("a", *({"id": 1, "ts": time} for time in times))
    driver.insert("b", {"id": 1, "ts": times[0]})
    driver.step(1_000)
    assert pending_views(driver._engine) == {
        "every": "until 1970-01-01 00:00:10 (UTC)",
        "past": "for the watermark of a.ts",
        "both": "for the watermarks of a.ts and b.ts",
    }
    driver.watermark("a", datetime(2024, 1, 1, 12, 0, 20))
    driver.watermark("b", datetime(2024, 1, 1, 12, 0, 20))
    driver.step(10_000)
    assert pending_views(driver._engine) == {"past": "for the watermark of a.ts"}, "the row of 30 seconds"
    driver.watermark("a", datetime(2024, 1, 1, 12, 0, 31))
    driver.step(11_000)
    assert pending_views(driver._engine) == {}
