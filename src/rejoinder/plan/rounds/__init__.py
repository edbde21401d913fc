"""From delta paths to steps of rounds."""
