-- Bounded side input: each bid with the value that the table has when the bid arrives.
CREATE VIEW q13 AS
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid b JOIN side_input FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS s ON MOD(b.auction, 10000) = s.key;
