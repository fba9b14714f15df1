"""API keys, and the limits of a key to some namespaces."""
