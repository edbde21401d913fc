-- Hot items. Each window is emitted once, when it closes.
WITH counts AS (
  SELECT auction, COUNT(*) AS num, window_start, window_end
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
)
SELECT c.auction, c.num
FROM counts c
JOIN (SELECT MAX(num) AS most, window_start, window_end FROM counts GROUP BY window_start, window_end) m
  ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most
