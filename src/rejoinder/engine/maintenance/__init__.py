"""Backup, vacuum, and diagnosis of a deleted or outdated state directory."""
