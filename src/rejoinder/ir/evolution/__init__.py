"""How sources change: column changes, and former definitions."""
