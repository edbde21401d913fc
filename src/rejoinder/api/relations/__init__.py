"""Relations, streams, tables and windowed tables in Python."""
