"""Reasoning about event time: frontiers, retention, finality, gates."""
