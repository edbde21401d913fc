"""Pure functions on Arrow and NumPy: hash, sort, consolidate, probe, expand, evaluate. No state, no I/O, no Spark."""
