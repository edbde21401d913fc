"""Watermarks of sources and partitions, their coalescing over inputs, and formulas over them."""
