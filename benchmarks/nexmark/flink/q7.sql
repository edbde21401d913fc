-- Highest bid of each ten seconds.
SELECT b.auction, b.price, b.bidder, b.`dateTime`, b.extra
FROM bid b
JOIN (
  SELECT MAX(price) AS most, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) m ON b.price = m.most
WHERE b.`dateTime` BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end
