"""Avro binary to Arrow and back."""
