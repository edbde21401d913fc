-- Last bid. Flink plans ROW_NUMBER by event time as deduplication, as long as nothing else is in ORDER BY.
SELECT auction, bidder, price, channel, url, `dateTime`, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS place
  FROM bid
)
WHERE place <= 1
