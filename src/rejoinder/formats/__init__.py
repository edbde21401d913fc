"""Decode and encode files and records: one module per format, which reads bounded chunks and names file and line."""
