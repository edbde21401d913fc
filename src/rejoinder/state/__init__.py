"""The state of a flow between epochs, and how views are read from it."""
