"""One file per physical step: what a task does with its streams."""
