"""Ad-hoc queries, replays of changes, and views for Spark readers."""
