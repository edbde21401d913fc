"""Connectors: one folder per external system or file format, with its options, source and sink, behind one registry."""
