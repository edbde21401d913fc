"""Spark's types, literals and casts."""
