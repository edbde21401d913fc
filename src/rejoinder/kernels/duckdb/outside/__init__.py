"""Functions of Arrow arrays that templates call: what DuckDB itself cannot compute."""
