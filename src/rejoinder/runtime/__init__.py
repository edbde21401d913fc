"""One bucket of one operator, one file each: what a task does with its streams. Mirrors `plan.physical.steps`."""
