"""Groups: one row for each, with the accumulators of aggregates."""
