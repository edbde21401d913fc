"""Where the rounds of an epoch run: in this process, or on Spark."""
