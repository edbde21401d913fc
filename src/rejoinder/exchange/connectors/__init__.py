"""Kafka, Delta and JDBC as Spark reaches them."""
