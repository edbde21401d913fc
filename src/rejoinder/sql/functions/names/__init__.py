"""The names that Spark generates for expressions without an alias."""
