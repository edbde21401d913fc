"""Templates of functions on arrays, maps and structs."""
