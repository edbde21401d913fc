"""The SQL surface: statements, binder, expressions. The only importer of sqlglot."""
