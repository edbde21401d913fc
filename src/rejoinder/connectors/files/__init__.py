"""Files: CSV, JSON, Parquet and Arrow, in folders on disk or in an object store."""
