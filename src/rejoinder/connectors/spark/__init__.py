"""What needs Spark in sinks with one row per key."""
