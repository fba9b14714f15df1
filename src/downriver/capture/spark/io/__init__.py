"""The datasets that a Spark plan reads and writes, and how OpenLineage names them."""
