"""Rejoinder beside its peers: the same joins, the same rows, the same clock."""
