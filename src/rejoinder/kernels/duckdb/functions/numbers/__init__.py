"""Templates of functions on numbers."""
