"""The part that needs Spark."""
