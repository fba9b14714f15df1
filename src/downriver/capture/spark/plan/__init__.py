"""Column lineage of a Spark plan."""
