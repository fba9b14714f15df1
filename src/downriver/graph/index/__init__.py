"""The graph as arrays of integers, which are the store's ids of nodes, columns and edges."""
