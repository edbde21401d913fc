-- Last bid: of each bidder on each auction.
CREATE VIEW q18 AS
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC, price DESC, channel, url, extra) AS place
  FROM bid
)
WHERE place <= 1;
