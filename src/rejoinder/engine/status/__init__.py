"""The status of a running flow: EXPLAIN and SHOW, watermark status, pending changes."""
