"""The page of a flow: its graph, epochs, watermarks, views and metrics, read from committed manifests without Spark."""
