"""Definitions of sources, sinks and views, checked."""
