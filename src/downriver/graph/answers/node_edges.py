"""Edges between datasets and jobs, as answers show them: in order, with their evidence.

Order and age are computed with arrays, and rendered edges are cached. So an answer of a thousand
nodes takes a few milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from downriver.graph.answers.view import merge_spans, render_evidence, stale_after
from downriver.model.answers import TraceEdge
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph.answers.view import Question, WalkedEdges
    from downriver.graph.index.vectors import Flags, Ints, Longs
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.model.answers import TraceNode
    from downriver.store import CatalogReader

_KIND_NAMES = {int(kind): kind.name.lower() for kind in EdgeKind}
_KINDS = len(_KIND_NAMES) + 1
_KIND_ORDER = np.zeros(max(_KIND_NAMES) + 1, np.int64)
_KIND_ORDER[sorted(_KIND_NAMES, key=_KIND_NAMES.__getitem__)] = np.arange(len(_KIND_NAMES))


class _Rows(NamedTuple):
    """Edges in the order of an answer. Equal keys mean the same source, target and kind."""

    key: Longs
    id: Ints  # the store's
    job: Ints  # behind the edge, or 0
    stale: Flags

    def at(self, places: Longs | Flags) -> _Rows:
        """Return some of the rows."""
        return _Rows(self.key[places], self.id[places], self.job[places], self.stale[places])


class NodeEdges:
    """Renders the edges of one answer."""

    def __init__(
        self,
        index: GraphSnapshot,
        reader: CatalogReader,
        question: Question,
        tasks: Mapping[int, int],
    ) -> None:
        self._index = index
        self._graph = index.nodes
        self._reader = reader
        self._question = question
        self._tasks = tasks  # statement job -> the task to show

    def rendered(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges by source, target, kind and job. All names of a node give one edge."""
        source, target = self._as_tasks(steps.source), self._as_tasks(steps.target)
        steps = steps._replace(source=source, target=target)
        rows = self._rows(steps, nodes)
        repeated = rows.key[1:] == rows.key[:-1]
        if not repeated.any():
            return self._each(rows, steps, nodes)
        tied = np.zeros(len(rows.key), np.bool_)
        tied[1:] |= repeated
        tied[:-1] |= repeated
        single = rows.at(~tied)
        edges = list(zip(single.key.tolist(), self._each(single, steps, nodes), strict=True))
        edges += self._merged(rows.at(tied), steps, nodes)
        edges.sort(key=lambda row: (row[0], row[1].job or ""))
        return [edge for _, edge in edges]

    def _as_tasks(self, nodes: Ints) -> Ints:
        """Return nodes with tasks in place of the jobs that report their statements."""
        if not self._tasks:
            return nodes
        return np.array([self._tasks.get(node, node) for node in nodes.tolist()], np.int32)

    def _rows(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> _Rows:
        flow, numbers = self._graph.flow, np.fromiter(nodes, np.int32, len(nodes))
        ids = [node.id for node in nodes.values()]
        ranks = np.empty(len(ids), np.int64)
        ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        by_number = np.argsort(numbers)
        numbers, ranks = numbers[by_number], ranks[by_number]
        source, target = (
            ranks[np.searchsorted(numbers, ends)] for ends in (steps.source, steps.target)
        )
        key = (source * len(ids) + target) * _KINDS + _KIND_ORDER[flow.kind[steps.edges]]
        jobs = self._graph.jobs(steps.edges)
        stale = self._are_stale(steps.edges, jobs)
        rows = _Rows(key, flow.id[steps.edges], self._as_tasks(jobs), stale)
        return rows.at(np.argsort(key, kind="stable"))

    def _are_stale(self, edges: Ints, jobs: Ints) -> Flags:
        """Return which edges are stale: runs of the job did not confirm them for days."""
        until = np.minimum(self._graph.jobs_last_seen(jobs), self._question.as_of)
        before = until - stale_after(self._question.stale_days)
        stale: Flags = self._graph.flow.last_at.of(edges) < before
        return stale

    def _each(
        self, rows: _Rows, steps: WalkedEdges, nodes: Mapping[int, TraceNode]
    ) -> list[TraceEdge]:
        """Render each row as an edge."""
        ids = rows.id.tolist()
        if self._tasks:  # the cache has edges of the statements themselves
            rendered = self._render(ids, steps, nodes)
            edges = [rendered[edge] for edge in ids]
        else:
            edges = self._index.cache.edges(
                ids, self._index.version, lambda missing: self._render(missing, steps, nodes)
            )
        for place in np.flatnonzero(rows.stale).tolist():
            edges[place] = msgspec.structs.replace(edges[place], status="stale")
        return edges

    def _merged(
        self, rows: _Rows, steps: WalkedEdges, nodes: Mapping[int, TraceNode]
    ) -> list[tuple[int, TraceEdge]]:
        """Render rows of the same source, target, kind and job as one edge, with its key."""
        edges = dict(zip(rows.id.tolist(), self._each(rows, steps, nodes), strict=True))
        groups: dict[tuple[int, int], set[int]] = {}
        for key, edge, job in zip(*(column.tolist() for column in rows[:3]), strict=True):
            groups.setdefault((key, job), set()).add(edge)
        several = {edge for group in groups.values() if len(group) > 1 for edge in group}
        spans = self._reader.evidence.edges(several) if several else {}
        merged = []
        for (key, _), group in groups.items():
            edge = edges[min(group)]
            if len(group) > 1:
                span = merge_spans(spans[one] for one in sorted(group))
                stale = all(edges[one].status == "stale" for one in group)
                edge = msgspec.structs.replace(edge, **render_evidence(span, stale=stale))
            merged.append((key, edge))
        return merged

    def _render(
        self, ids: list[int], steps: WalkedEdges, nodes: Mapping[int, TraceNode]
    ) -> dict[int, TraceEdge]:
        """Render edges that are not stale, by the store's ids."""
        spans = self._reader.evidence.edges(set(ids))
        flow = self._graph.flow
        kinds = flow.kind[steps.edges]
        stated_by = self._as_tasks(self._graph.jobs(steps.edges))
        jobs = np.where(kinds == EdgeKind.DERIVES, stated_by, 0)
        of_ids = zip(
            flow.id[steps.edges].tolist(),
            steps.source.tolist(),
            steps.target.tolist(),
            kinds.tolist(),
            jobs.tolist(),
            strict=True,
        )
        names = self._index.cache.names(np.unique(jobs[jobs > 0]).tolist(), self._reader)
        return {
            edge: TraceEdge(
                source=nodes[source].id,
                target=nodes[target].id,
                kind=_KIND_NAMES[kind],
                job=str(names[job]) if job else None,
                **render_evidence(spans[edge], stale=False),
            )
            for edge, source, target, kind, job in of_ids
            if edge in spans
        }
