"""Functions and operators on numbers."""
