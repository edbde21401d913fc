"""Frozen data that every layer shares: expressions, the logical plan, the catalog."""
