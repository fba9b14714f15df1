"""Watching over the graph: how healthy it is, what drifted, what broke, and where tags lead."""
