"""The Python surface: a flow, its relations, and what can be read from it."""
