"""CSV files to Arrow."""
