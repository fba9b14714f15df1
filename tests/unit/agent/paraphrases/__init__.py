"""Messages with many wordings, the graph that they ask about, and the score of the answers."""
