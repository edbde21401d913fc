"""Functions of the user as sinks."""
