"""Kafka, Delta and JDBC through Spark."""
