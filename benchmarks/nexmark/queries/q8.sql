-- Monitor new users: who offers an auction within the ten seconds in which they joined.
CREATE VIEW q8 AS
SELECT p.id, p.name, p.window_start
FROM (
  SELECT id, name, window_start, window_end
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS))
  GROUP BY id, name, window_start, window_end
) p
JOIN (
  SELECT seller, window_start, window_end
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS))
  GROUP BY seller, window_start, window_end
) a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end;
