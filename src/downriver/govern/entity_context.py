"""The context of a finding: owners, tags, and entities upstream and downstream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from downriver.govern.drift.lifecycle import find_drop, is_drop
from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.names.resolution import find_entity
from downriver.model.answers import Direction
from downriver.model.facts import EdgeKind, RunState
from downriver.model.governance import Affected, FindingKind, Severity
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.facets.dataset import LIFECYCLE
from downriver.openlineage.facets.description import OWNERSHIP, TAGS, parse_owners, parse_tags

if TYPE_CHECKING:
    from downriver.graph import GraphSnapshot
    from downriver.graph.index.identities import Identities
    from downriver.graph.index.vectors import Ints
    from downriver.model.answers import Trace, TraceNode
    from downriver.model.facts import Span
    from downriver.model.governance import Finding
    from downriver.store import CatalogReader

_SHOWN = 20
_RUNS = 50
_OF_A_COLUMN = (
    FindingKind.COLUMN_ADDED,
    FindingKind.COLUMN_DROPPED,
    FindingKind.COLUMN_RENAMED,
    FindingKind.COLUMN_RETYPED,
)
_BREAKS = frozenset({*_OF_A_COLUMN[1:], FindingKind.DATASET_DROPPED})


class OwnersAndTags(NamedTuple):
    """The owners and tags of a dataset or job."""

    owners: list[str]
    tags: list[str]


class EntityContext:
    """The graph around findings, in one view of a store."""

    def __init__(self, graph: GraphSnapshot, reader: CatalogReader, stale_days: int) -> None:
        self._graph = graph
        self._reader = reader
        self.stale_days = stale_days
        self._labels: dict[int, OwnersAndTags] = {}
        self._drops: dict[int, Span | None] = {}
        self._downstream: dict[tuple[int, int | None, int], Trace] = {}

    @property
    def identities(self) -> Identities:
        """The names of the nodes of the graph."""
        return self._graph.nodes.identities

    def complete(self, finding: Finding, node: int) -> Finding:
        """Return a finding with its owners and the affected entities downstream."""
        entity = self._entity(finding, node)
        answer = self.downstream(entity, _SHOWN)
        count = len(answer.nodes) - 1 + answer.omitted_count
        worse = finding.kind in _BREAKS and count > 0
        return msgspec.structs.replace(
            finding,
            severity=Severity.CRITICAL if worse else finding.severity,
            owners=self.owners(node),
            affected_count=count,
            affected=[self.affected(n) for n in answer.nodes if n.depth or n.id != answer.root.id],
        )

    def _entity(self, finding: Finding, node: int) -> Entity:
        node_id = self._graph.nodes.identities.display_names([node], self._reader)[node].id
        if finding.kind in _OF_A_COLUMN and isinstance(node_id, DatasetId):
            column = self._reader.columns.find(node, finding.subject)
            if column is not None:
                return Entity(ColumnId(node_id, column[1]), node, column[0])
        return Entity(node_id, node)

    def trace(self, entity: Entity, direction: Direction, limit: int) -> Trace:
        """Return a trace in one direction, the nearest entities first."""
        question = Question(direction, None, FOREVER, limit, self.stale_days)
        return trace(self._graph, self._reader, entity, question)

    def downstream(self, entity: Entity, shown: int) -> Trace:
        """Return the downstream trace; of a column with opaque readers, that of its dataset."""
        asked = (entity.node, entity.column, shown)
        if asked not in self._downstream:  # an entity may have many findings
            self._downstream[asked] = self._trace_downstream(entity, shown)
        return self._downstream[asked]

    def _trace_downstream(self, entity: Entity, shown: int) -> Trace:
        answer = self.trace(entity, Direction.DOWNSTREAM, shown + 1)
        if isinstance(entity.id, ColumnId) and len(answer.nodes) == 1 and not answer.complete:
            # It is unknown which columns the readers use: all of them may be affected.
            return self.trace(
                Entity(entity.id.dataset, entity.node), Direction.DOWNSTREAM, shown + 1
            )
        return answer

    def affected(self, node: TraceNode) -> Affected:
        """Return a node of a trace with its owners and tags."""
        entity = find_entity(node.id, self._reader, self._graph.nodes.identities)
        labels = self.labels(entity.node) if entity is not None else OwnersAndTags([], [])
        return Affected(
            id=node.id, kind=node.kind, depth=node.depth, owners=labels.owners, tags=labels.tags
        )

    def owners(self, node: int) -> list[str]:
        """Return the owners of a node; without any, the owners of the jobs that write it."""
        owners = self.labels(node).owners
        if owners:
            return owners
        found = [
            owner for job in self._by_name(self.writers(node)) for owner in self.labels(job).owners
        ]
        return list(dict.fromkeys(found))

    def owners_of(self, entity: str) -> list[str]:
        """Return the owners of an entity, given the id from an answer."""
        resolved = find_entity(entity, self._reader, self._graph.nodes.identities)
        return [] if resolved is None else self.owners(resolved.node)

    def number(self, node: TraceNode) -> int | None:
        """Return the number of a dataset or job in an answer."""
        entity = find_entity(node.id, self._reader, self._graph.nodes.identities)
        return None if entity is None else self._graph.nodes.identities.canonical(entity.node)

    def writers(self, node: int) -> list[int]:
        """Return the jobs that write a dataset under any of its names. To drop is not to write."""
        flow, edges = self._graph.nodes.flow, self._writes(node)
        return sorted(set(flow.ends.source[edges].tolist()))

    def last_written(self, node: int, now: int) -> int | None:
        """Return when a dataset was last written: by a completed or a running run.

        Failed runs and code that was only read do not count.
        """
        flow, edges = self._graph.nodes.flow, self._writes(node)
        jobs, seen = flow.ends.source[edges].tolist(), flow.last_at.of(edges).tolist()
        moments = [
            self._last_write(job, min(at, now), now) for job, at in zip(jobs, seen, strict=True)
        ]
        return max((at for at in moments if at is not None), default=None)

    def _last_write(self, job: int, last_seen: int, now: int) -> int | None:
        """Return when a job last wrote a dataset whose edge was last seen at `last_seen`.

        The event that names an output may be the START of the run.
        """
        runs = [r for r in self._reader.history.runs(job, _RUNS, now) if r.began_at <= last_seen]
        for run in sorted(runs, key=lambda run: run.began_at, reverse=True):
            if run.state is RunState.COMPLETE and run.state_at <= now:
                return run.state_at
            if run.state is RunState.RUNNING and run.state_at <= last_seen:
                return last_seen  # a stream
        return None

    def _writes(self, node: int) -> Ints:
        nodes = self._graph.nodes
        names = np.array(nodes.identities.group(node), np.int32)
        edges = nodes.flow.ends.entering.of(names)
        writes: Ints = edges[nodes.flow.kind[edges] == EdgeKind.WRITES]
        drop = self._drop(node)
        if drop is None:
            return writes
        seen = zip(nodes.flow.first_at.of(writes), nodes.flow.last_at.of(writes), strict=True)
        kept: Ints = writes[np.array([not is_drop(times, drop) for times in seen], np.bool_)]
        return kept

    def _drop(self, node: int) -> Span | None:
        """Return when a dataset was dropped, if that is its last known change."""
        if node not in self._drops:
            read = self._reader.history.facet_versions
            names = self._graph.nodes.identities.group(node)
            self._drops[node] = find_drop(v for name in names for v in read(name, LIFECYCLE))
        return self._drops[node]

    def labels(self, node: int) -> OwnersAndTags:
        """Return the owners and tags of a node under all its names."""
        if node not in self._labels:
            owners: list[str] = []
            tags: set[str] = set()
            for name in self._by_name(self._graph.nodes.identities.group(node)):
                facets = self._reader.facets.of(name)
                owners += parse_owners(facets.get(OWNERSHIP))
                tags |= parse_tags(facets.get(TAGS)).whole
            self._labels[node] = OwnersAndTags(list(dict.fromkeys(owners)), sorted(tags))
        return self._labels[node]

    def _by_name(self, nodes: list[int]) -> list[int]:
        """Return nodes sorted by name. Their numbers depend on the order of arrival."""
        if len(nodes) == 1:
            return nodes
        names = self._reader.nodes.by_ids(nodes)
        return sorted(nodes, key=lambda node: str(names[node]))
