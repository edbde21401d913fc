"""Hydration: fills new arrangements and views completely, or refuses them."""
