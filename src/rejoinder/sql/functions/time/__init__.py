"""Functions of dates and timestamps, and windows of time."""
