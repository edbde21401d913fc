-- Highest bid: the bids with the highest price of each ten seconds.
CREATE VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b
JOIN (
  SELECT MAX(price) AS most, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS))
  GROUP BY window_start, window_end
) m ON b.price = m.most
WHERE b.dateTime BETWEEN m.window_end - INTERVAL 10 SECONDS AND m.window_end;
