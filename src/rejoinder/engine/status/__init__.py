"""What a running flow tells: EXPLAIN and SHOW, watermark status, pending changes."""
