-- Currency conversion: prices in euro.
CREATE VIEW q1 AS SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;
