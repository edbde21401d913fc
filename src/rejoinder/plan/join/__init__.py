"""Delta joins: the join graph and the order of lookups for each input."""
