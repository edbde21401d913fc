-- Pass through: every bid as it is.
CREATE VIEW q0 AS SELECT auction, bidder, price, dateTime, extra FROM bid;
