"""Commands of the lake, which run on Spark."""
