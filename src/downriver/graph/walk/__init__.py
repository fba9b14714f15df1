"""Walks over the graph: the nodes reachable from a node or column, and paths between two."""
