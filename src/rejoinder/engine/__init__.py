"""Epochs: plan, run, commit, recover, hydrate, read. Knows what an epoch is; does not know Spark or SQL text."""
