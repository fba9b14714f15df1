"""Parts of the store as screens show them: graph, column edges, selections, runs."""
