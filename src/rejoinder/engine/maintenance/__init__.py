"""Backup, vacuum, and errors about the state directory."""
