"""API keys, and what a key that is limited to namespaces may see and write."""
