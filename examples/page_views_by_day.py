"""Page views by day, compared with those a week before: aggregates by key and window, joined with a shifted window.

Run it: python examples/page_views_by_day.py
"""

from __future__ import annotations

import rejoinder as rj
from rejoinder.testing import Driver

driver = Driver()
driver.sql("CREATE STREAM views (page STRING, reader STRING, ts TIMESTAMP)")
driver.sql("CREATE TABLE pages (page STRING, title STRING, PRIMARY KEY (page))")
views, pages = rj.Stream.of(driver, "views", time="ts"), rj.Table.of(driver, "pages")

daily = views.group_by("page").windowed(rj.tumble("1 day")).aggregate("count(*) AS views")
compared = daily.left_join(
    daily.alias("before"),
    shift="-7 days",
    select=["views.page", "views.window", "views.views", "before.views AS week_ago"],
)
titled = compared.left_join(pages)
# A windowed table has no name of its own to be read by: what leaves it says what becomes of the window.
titled.to_stream("title", "to_date(window.start) AS day", "views", "week_ago").to("report")
views.left_join(daily.alias("day"), window="TUMBLE(ts, INTERVAL 1 DAY)").to("rank_when_it_came")

driver.insert("pages", {"page": "/", "title": "Home"})
for day, readers in (("2026-01-01", ["ada", "bob"]), ("2026-01-08", ["ada"]), ("2026-01-08", ["eve", "bob"])):
    for reader in readers:
        driver.insert("views", {"page": "/", "reader": reader, "ts": f"{day} 12:00:00"})
    driver.step()

print(driver.table("report"))
print(driver.sql("SELECT reader, views FROM rank_when_it_came WHERE ts > '2026-01-02' ORDER BY reader"))
