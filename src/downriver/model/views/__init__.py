"""Parts of the graph, runs and searches, as screens show them."""
