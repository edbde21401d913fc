"""Scalar expressions on Arrow tables, evaluated by DuckDB."""
