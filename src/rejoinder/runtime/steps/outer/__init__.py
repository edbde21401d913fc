"""Steps of outer, semi and anti joins: which rows have a match."""
