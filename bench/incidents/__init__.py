"""Pipelines that run in DuckDB, the events of their runs, and the faults injected into them."""
