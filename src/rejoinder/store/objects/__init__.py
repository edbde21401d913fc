"""Named immutable objects on local disk, in memory, or on S3, GCS and Azure."""
