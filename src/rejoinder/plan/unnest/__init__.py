"""Unnesting: joins whose right side reads the left one become joins that do not."""
