"""Match rows of a stream with the runs of an arrangement."""
