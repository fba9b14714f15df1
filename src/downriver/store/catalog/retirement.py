"""Nodes that are retired: forgotten by a person, pruned by policy, or dropped and unused.

A retired node comes back with the next event that mentions it. A single edge can be retired, too,
and comes back with the next event that shows it. Retired runs of a job are not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.ids import EDGE_RECORDS, RUN_RECORDS, NodeKind
from downriver.openlineage.facets.dataset import parse_lifecycle
from downriver.openlineage.facets.edge_retirement import (
    EDGE_RETIREMENT,
    EdgeRetirement,
    parse_edge_retirement,
)
from downriver.openlineage.facets.run_retirement import (
    RUN_RETIREMENT,
    RunRetirement,
    parse_run_retirement,
)
from downriver.openlineage.wire import parse_time
from downriver.store.catalog.encoding import read_body, rows_by_id
from downriver.store.catalog.nodes import NodeQueries

if TYPE_CHECKING:
    from downriver.store.port import SqlQueries

# The literal names match the conditions of two partial indexes.
_FORGOTTEN = """
    SELECT d.node, d.last_at FROM facets d JOIN nodes n ON n.id = d.node
    WHERE d.name = 'downriver_deleted' AND d.role = 0 AND d.last_event = n.last_event
"""
# A dropped table that a job reads is not retired: the job breaks, and answers must show why.
_DROPPED = """
    SELECT d.node, d.last_at, b.body FROM facets d
    JOIN nodes n ON n.id = d.node JOIN bodies b ON b.digest = d.digest
    WHERE d.name = 'lifecycleStateChange' AND d.role = 0 AND d.last_event = n.last_event
      AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.source = d.node AND e.kind IN (1, 3))
"""
# The last statement of a record is in force.
_STATEMENTS = f"""
    SELECT f.node, b.body, f.last_at FROM nodes n JOIN facets f ON f.node = n.id
    JOIN bodies b ON b.digest = f.digest
    WHERE n.kind = {int(NodeKind.RECORD)} AND n.namespace = ? AND f.role = 0 AND f.name = ?
    ORDER BY f.last_at, f.last_event, f.digest
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
        """Return the retired nodes, each with the time of its retirement."""
        retired_at: dict[int, int] = dict(self._queries.rows(_FORGOTTEN))
        for node, at, body in self._queries.rows(_DROPPED):
            if parse_lifecycle(read_body(body)).upper() == "DROP":
                retired_at.setdefault(node, at)
        return retired_at

    def retired_edges(self) -> dict[tuple[int, int], int]:
        """Return the source and target of each retired edge, with the time of its retirement."""
        current: dict[int, tuple[EdgeRetirement, int]] = {}
        for record, body, at in self._queries.rows(_STATEMENTS, (EDGE_RECORDS, EDGE_RETIREMENT)):
            if statement := parse_edge_retirement(read_body(body)):
                current[record] = statement, at
        retired = [(each, at) for each, at in current.values() if each.retired]
        if not retired:
            return {}
        nodes = NodeQueries(self._queries)
        numbers = nodes.find_each(node for each, _ in retired for node in (each.job, each.dataset))
        ends: dict[tuple[int, int], int] = {}
        for each, at in retired:
            job, dataset = numbers.get(each.job), numbers.get(each.dataset)
            if job is not None and dataset is not None:
                ends[(dataset, job) if each.direction == "reads" else (job, dataset)] = at
        sql = "SELECT source, target, last_at FROM edges WHERE kind IN (1, 2) AND source IN"
        seen = {
            (source, target): last_at
            for source, target, last_at in rows_by_id(
                self._queries, sql, {source for source, _ in ends}
            )
        }
        return {edge: at for edge, at in ends.items() if edge in seen and seen[edge] <= at}

    def retired_runs(self) -> dict[int, int]:
        """Return each job with retired runs, and the time before which they began."""
        current: dict[int, RunRetirement] = {}
        for record, body, _ in self._queries.rows(_STATEMENTS, (RUN_RECORDS, RUN_RETIREMENT)):
            if statement := parse_run_retirement(read_body(body)):
                current[record] = statement
        retired = [each for each in current.values() if each.retired]
        if not retired:
            return {}
        numbers = NodeQueries(self._queries).find_each(each.job for each in retired)
        return {
            numbers[each.job]: parse_time(each.before, "before")
            for each in retired
            if each.job in numbers
        }
