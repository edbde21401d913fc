"""Templates of functions on text and bytes."""
