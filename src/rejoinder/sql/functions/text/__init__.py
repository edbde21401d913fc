"""Functions on text and bytes."""
