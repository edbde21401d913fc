"""One module per engine; each runs one workload in a process of its own."""
