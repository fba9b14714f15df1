"""Who is concerned: the owners of a thing, and all that lies downstream of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.resolve import find_entity
from downriver.impact.labels import read_owners, read_tags
from downriver.model.answers import Direction
from downriver.model.findings import Affected, FindingKind, Severity
from downriver.model.ids import ColumnId

if TYPE_CHECKING:
    from downriver.graph import GraphIndex
    from downriver.model.answers import Trace, TraceNode
    from downriver.model.findings import Finding
    from downriver.model.ids import DatasetId, JobId
    from downriver.store import Reader

_SHOWN = 20
_OF_A_COLUMN = (
    FindingKind.COLUMN_ADDED,
    FindingKind.COLUMN_DROPPED,
    FindingKind.COLUMN_RENAMED,
    FindingKind.COLUMN_RETYPED,
)
_BREAKS = frozenset(_OF_A_COLUMN[1:])


class Labels(NamedTuple):
    """What people said of a dataset or job."""

    owners: list[str]
    tags: list[str]


class Surroundings:
    """The graph around findings, within one view of a store."""

    def __init__(self, graph: GraphIndex, reader: Reader, stale_days: int) -> None:
        self._graph = graph
        self._reader = reader
        self._stale_days = stale_days
        self._labels: dict[int, Labels] = {}

    def complete(self, finding: Finding, node: int) -> Finding:
        """Return a finding with its owners and what it affects downstream."""
        entity = self._entity(finding, node)
        found = self.trace(entity, Direction.DOWNSTREAM, _SHOWN + 1)
        if len(found.nodes) == 1 and entity.column is not None and not found.complete:
            # Nobody knows which columns its readers use: any of them may be affected.
            found = self.trace(Entity(entity.id, node), Direction.DOWNSTREAM, _SHOWN + 1)
        count = len(found.nodes) - 1 + found.omitted_count
        worse = finding.kind in _BREAKS and count > 0
        return msgspec.structs.replace(
            finding,
            severity=Severity.CRITICAL if worse else finding.severity,
            owners=self.owners(node),
            affected_count=count,
            affected=[self.affected(n) for n in found.nodes if n.depth or n.id != found.root.id],
        )

    def _entity(self, finding: Finding, node: int) -> Entity:
        spoken = self._graph.nodes.identities.speak([node], self._reader)[node].id
        if finding.kind in _OF_A_COLUMN:
            column = self._reader.find_column(node, finding.subject)
            if column is not None:
                return Entity(ColumnId(spoken, column[1]), node, column[0])  # type: ignore[arg-type]
        return Entity(spoken, node)

    def trace(self, entity: Entity, direction: Direction, limit: int) -> Trace:
        """Return what lies on one side of an entity, the nearest first."""
        question = Question(direction, None, FOREVER, limit, self._stale_days)
        return trace(self._graph, self._reader, entity, question)

    def affected(self, node: TraceNode) -> Affected:
        """Return a node of a trace with those who own it."""
        found = find_entity(node.id, self._reader, self._graph.nodes.identities)
        labels = self.labels(found.node) if found is not None else Labels([], [])
        return Affected(
            id=node.id, kind=node.kind, depth=node.depth, owners=labels.owners, tags=labels.tags
        )

    def owners(self, node: int) -> list[str]:
        """Return who owns a node; of a dataset that names nobody, who owns the jobs that write it."""
        owners = self.labels(node).owners
        if owners:
            return owners
        writers = (self._reader.find_node(job) for job in self.writers(node))
        found = [o for job in writers if job is not None for o in self.labels(job).owners]
        return list(dict.fromkeys(found))

    def writers(self, node: int) -> list[JobId]:
        """Return the jobs that write a dataset under any of its names."""
        flow = self._graph.nodes.flow.ends
        del flow
        names = self._graph.nodes.identities.group(node)
        return [job for name in names for job in self._reader.writers_of(name)]  # type: ignore[misc]

    def labels(self, node: int) -> Labels:
        """Return the owners and tags of a node under all its names."""
        if node not in self._labels:
            facets: dict[str, bytes] = {}
            for name in self._graph.nodes.identities.group(node):
                facets = {**facets, **self._reader.facets(name)}
            tags, _ = read_tags(facets.get("tags"))
            self._labels[node] = Labels(list(read_owners(facets.get("ownership"))), sorted(tags))
        return self._labels[node]
