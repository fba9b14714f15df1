"""Gold tables: the graph, its health, and governance."""
