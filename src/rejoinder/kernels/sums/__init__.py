"""Exact sums of integers, floats and decimals, per group."""
