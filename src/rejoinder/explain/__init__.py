"""Plans in words: EXPLAIN and the bound certificate."""
