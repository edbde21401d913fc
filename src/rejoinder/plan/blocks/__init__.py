"""The normal form: blocks, their conditions and accumulators."""
