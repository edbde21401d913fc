"""Sinks: deliver the changes of views to files, tables, topics and functions after each commit."""
