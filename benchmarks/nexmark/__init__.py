"""Nexmark: an online auction as three streams, and its 23 queries."""
