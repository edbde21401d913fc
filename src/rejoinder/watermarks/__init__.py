"""Watermarks: of sources and partitions, combined over inputs, and as formulas."""
