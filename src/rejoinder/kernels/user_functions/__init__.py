"""Functions of the user: imported by name, called with a time limit, and their answers checked."""
