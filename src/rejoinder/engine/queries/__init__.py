"""Ad-hoc queries, replays of the past, and views for Spark readers."""
