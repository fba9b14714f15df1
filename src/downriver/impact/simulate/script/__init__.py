"""The SQL of a process: parsed, resolved against the catalog, and typed."""
