"""Runs, spines, manifests and their collection, on local disk, in memory or in an object store."""
