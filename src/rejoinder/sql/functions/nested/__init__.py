"""Functions on arrays, maps and structs."""
