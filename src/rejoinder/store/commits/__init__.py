"""Manifests: how a version is published, found, and collected."""
