"""Window functions, QUALIFY, and ORDER BY with LIMIT: from syntax to the plan."""
