"""Nodes that are retired: forgotten by a person, pruned by policy, or dropped and unused.

A retired node comes back with the next event that mentions it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.openlineage.facets.dataset import parse_lifecycle
from downriver.store.catalog.encoding import read_body

if TYPE_CHECKING:
    from downriver.store.port import SqlQueries

# The literal names match the conditions of two partial indexes.
_FORGOTTEN = """
    SELECT d.node, d.last_at FROM facets d JOIN nodes n ON n.id = d.node
    WHERE d.name = 'downriver_deleted' AND d.role = 0 AND d.last_event = n.last_event
"""
# A table that a job reads stays: the job breaks, and answers must show why.
_DROPPED = """
    SELECT d.node, d.last_at, b.body FROM facets d
    JOIN nodes n ON n.id = d.node JOIN bodies b ON b.digest = d.digest
    WHERE d.name = 'lifecycleStateChange' AND d.role = 0 AND d.last_event = n.last_event
      AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.source = d.node AND e.kind IN (1, 3))
"""


class RetirementQueries:
    """Reads which nodes are retired."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def last_mentions(self) -> dict[int, int]:
        """Return when an event last mentioned each dataset and job."""
        return dict(self._queries.rows("SELECT id, last_at FROM nodes WHERE kind IN (0, 1)"))

    def first_mentions(self) -> dict[int, int]:
        """Return when an event first mentioned each dataset and job."""
        return dict(self._queries.rows("SELECT id, first_at FROM nodes WHERE kind IN (0, 1)"))

    def retired(self) -> dict[int, int]:
        """Return the retired nodes, each with the time since when it is."""
        found: dict[int, int] = dict(self._queries.rows(_FORGOTTEN))
        for node, at, body in self._queries.rows(_DROPPED):
            if parse_lifecycle(read_body(body)).upper() == "DROP":
                found.setdefault(node, at)
        return found
