"""GROUP BY: keys, grouping sets, sessions, aggregates."""
