"""This process and this machine: caps, memory, private files, temporary folders, random names."""
