"""Executors of the rounds of an epoch: this process, or Spark."""
