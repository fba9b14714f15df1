"""Spark Connect: lineage of the requests to a remote Spark, from their plans."""
