"""Steps on ordered partitions: window functions, and the first rows of each partition."""
