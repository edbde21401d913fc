"""Parse statements: CREATE, ALTER, DROP, EXPLAIN, SHOW, and SELECT with a rendering."""
