"""From a syntax tree to the logical plan."""
