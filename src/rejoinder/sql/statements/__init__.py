"""Statements around a query: CREATE, ALTER, DROP, SHOW, SELECT with a rendering."""
