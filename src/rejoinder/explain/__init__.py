"""Plans as text: EXPLAIN and the bound certificate."""
