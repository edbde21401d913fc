"""Templates of functions on dates, times, windows and zones."""
