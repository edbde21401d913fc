-- User sessions: the bids of each bidder with at most ten seconds between two.
CREATE VIEW q11 AS
SELECT bidder, COUNT(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
FROM bid
GROUP BY bidder, session_window(dateTime, '10 seconds');
