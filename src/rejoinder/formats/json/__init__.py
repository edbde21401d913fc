"""JSON lines and Debezium envelopes to Arrow."""
