"""One dataflow for all views, and the hydration that fills new ones."""
