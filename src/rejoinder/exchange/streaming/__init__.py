"""The streaming query of a flow: its sources, checkpoint and ticks."""
