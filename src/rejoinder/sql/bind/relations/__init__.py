"""Items of FROM: joins and table functions."""
