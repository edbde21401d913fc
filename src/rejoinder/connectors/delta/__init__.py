"""Delta tables: their change feeds as sources, tables as sinks."""
