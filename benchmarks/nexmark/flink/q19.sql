-- Auction top 10.
SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place
  FROM bid
)
WHERE place <= 10
