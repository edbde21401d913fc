"""Sinks: where the changes of views go after each commit, and how far each has got."""
