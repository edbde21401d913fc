"""Sources whose rows are inserted by calls."""
