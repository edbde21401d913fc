"""Runs and spines: the sorted files that make up an arrangement or a changelog."""
