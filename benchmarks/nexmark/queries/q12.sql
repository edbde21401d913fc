-- Processing time windows: the bids of each bidder in each ten seconds in which they arrived.
CREATE VIEW q12 AS
SELECT bidder, COUNT(*) AS bid_count, window_start, window_end
FROM TABLE(TUMBLE(TABLE (SELECT bidder, _emit_time FROM CHANGES(TABLE bid)), DESCRIPTOR(_emit_time), INTERVAL 10 SECONDS))
GROUP BY bidder, window_start, window_end;
