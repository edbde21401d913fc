"""Hydration: how new arrangements and views are filled, completely or not at all."""
