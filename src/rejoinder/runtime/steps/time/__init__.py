"""Steps that work with event time: pending changes, late rows, validity windows."""
