"""From text to syntax trees: tokens, dialect, syntax errors, and the syntax of other systems."""
