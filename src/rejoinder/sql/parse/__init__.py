"""Text to syntax tree: tokens, dialect, syntax errors, spellings of other systems."""
