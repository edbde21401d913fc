-- Average selling price by seller: of the winning bids of the last ten closed auctions and this one.
CREATE VIEW q6 AS
SELECT seller, AVG(price) OVER (
  PARTITION BY seller ORDER BY dateTime, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
) AS avg_price
FROM (
  SELECT a.id, a.seller, b.price, b.dateTime,
    ROW_NUMBER() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.dateTime, b.bidder) AS place
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
)
WHERE place <= 1;
