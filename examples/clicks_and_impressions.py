"""Clicks and impressions: which click belongs to which impression, and which impressions were clicked at all.

Both are streams. A click within ten minutes after an impression of the same ad makes a pair. Pairs depend on the times
of the rows, not on the order in which they arrive. Run it: python examples/clicks_and_impressions.py
"""

from __future__ import annotations

import rejoinder as rj
from rejoinder.testing import Driver

driver = Driver()  # rj.Flow("state/ads") keeps the same definitions on Spark
for name in ("impressions", "clicks"):
    driver.sql(
        f"CREATE STREAM {name} (ad STRING, reader STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)"
    )
impressions, clicks = rj.Stream.of(driver, "impressions"), rj.Stream.of(driver, "clicks")

pairs = impressions.join(
    clicks,
    on=("ad", "reader"),
    within=("0 seconds", "10 minutes"),
    select=["impressions.ad", "impressions.reader", "timestampdiff(SECOND, impressions.ts, clicks.ts) AS seconds"],
).through("pairs")
pairs.group_by("ad").count("clicks").to("clicks_by_ad")
# What is known when an impression comes: a click that came before its impression is there, a later one is not.
impressions.left_join(clicks, on=("ad", "reader"), within="10 minutes").to("as_they_came")


def at(time: str, ad: str, reader: str) -> dict[str, str]:
    """A row of either stream."""
    return {"ad": ad, "reader": reader, "ts": f"2026-01-01 {time}"}


driver.insert("impressions", at("10:00:00", "tea", "ada"), at("10:00:00", "cup", "ada"), at("10:01:00", "tea", "bob"))
driver.step()
driver.insert("clicks", at("10:04:00", "tea", "ada"), at("10:30:00", "cup", "ada"), at("10:00:59", "tea", "eve"))
driver.step()
driver.insert("impressions", at("10:00:30", "tea", "eve"))  # out of order, and its click is there already
driver.step()

print(driver.table("pairs"))
print(driver.table("clicks_by_ad"))
print(driver.sql("SELECT ad, reader, clicks_ts AS clicked FROM as_they_came ORDER BY reader, ad"))
