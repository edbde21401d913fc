"""Streaming DataFrames of the user as sources."""
