"""How DuckDB computes the functions of `sql.functions`: one module per family, one entry per function."""
