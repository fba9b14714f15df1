"""Default sizes of answers and default namespaces. This module imports nothing heavy."""

from __future__ import annotations

DEFAULT_LIMIT = 1000  # nodes of a trace
GRAPH_NODES = 300  # of a graph on a screen
COLUMN_EDGES = 20_000  # of one answer
DEFAULT_FINDINGS = 100
MOST_RELATED = 1_000_000
MOST_EXPORTED = 100_000
DBT_NAMESPACE = "dbt"  # of dbt's jobs
MOST_COUNTED = 10_000  # matches of a search; of more, only that there are more
