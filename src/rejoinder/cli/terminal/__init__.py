"""What the command line writes: tables, progress, errors."""
