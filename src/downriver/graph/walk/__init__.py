"""Walks over the graph: what is reached from a node or column, and the paths between two."""
