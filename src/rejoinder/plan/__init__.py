"""From a query to a dataflow: logical tree, normal form, delta paths, arrangements, rounds. Decides; does not run."""
