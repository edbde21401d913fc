"""Spark as the data plane: session, sources as splits, rounds as stages, readers. The only importer of pyspark."""
