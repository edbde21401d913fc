"""TPC-H as views: what it costs to refresh them, against computing them again."""
