"""Time in the engine: clocks, gates, explicit watermarks, pending changes."""
