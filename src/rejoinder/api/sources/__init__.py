"""Sources that a program declares or feeds."""
