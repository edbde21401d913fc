"""Time zones: labels of timestamp types, and local times."""
