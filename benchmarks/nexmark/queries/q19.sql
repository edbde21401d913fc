-- Auction top 10: the ten highest bids of each auction.
CREATE VIEW q19 AS
SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, bidder, channel, url, extra) AS place
  FROM bid
)
WHERE place <= 10;
