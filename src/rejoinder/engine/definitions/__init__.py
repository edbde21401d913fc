"""Definitions: CREATE, ALTER and DROP against the catalog, and their commit."""
