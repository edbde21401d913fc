"""Work on Spark executors: the rounds of an epoch, reads of views, single tasks."""
