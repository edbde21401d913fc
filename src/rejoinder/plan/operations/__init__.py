"""Relational operations besides joins: groups, validity windows, enrichment, side outputs."""
