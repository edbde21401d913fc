"""Watermarks: of sources and partitions, coalesced over inputs, and formulas over them."""
