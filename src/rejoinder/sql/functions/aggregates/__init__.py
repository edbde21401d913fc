"""Aggregate functions: their registry, and of which primitive calls of the plan each one is made."""
