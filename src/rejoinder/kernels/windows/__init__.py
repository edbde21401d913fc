"""Window functions on sorted rows: slices of ordered runs, frames, values of calls. Pure NumPy and Arrow."""
