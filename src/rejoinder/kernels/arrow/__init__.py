"""Rows as Arrow columns: hash, sort, group, consolidate, probe, scatter."""
