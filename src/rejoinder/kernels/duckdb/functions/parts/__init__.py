"""Parts of templates: numbers, dates and letters as Spark reads and writes them, and arithmetic with many digits."""
