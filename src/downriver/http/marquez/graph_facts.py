"""Facts about datasets, jobs and runs for answers, with one query for each kind of fact."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.http.marquez.records import MarquezName
from downriver.model.facts import EdgeKind
from downriver.model.ids import ColumnId
from downriver.store.catalog.nodes import NodeRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph import CatalogSnapshot, Entity
    from downriver.graph.index.vectors import Ints
    from downriver.model.ids import NodeId
    from downriver.store import Run
    from downriver.store.catalog.run_history import RunFacet


class JobDataset(NamedTuple):
    """A dataset that a job reads or writes, with the first and last time of this edge."""

    number: int
    first_at: int
    last_at: int


class GraphFacts:
    """Datasets and jobs by number. All names of a dataset count as one, under one number."""

    def __init__(self, view: CatalogSnapshot, nodes: Ints, asked: Entity | None = None) -> None:
        graph, reader = view.graph.nodes, view.reader
        self._identities = graph.identities
        self.inputs = _datasets_of(view, nodes, EdgeKind.READS)
        self.outputs = _datasets_of(view, nodes, EdgeKind.WRITES)
        sides = (*self.inputs.values(), *self.outputs.values())
        around = {dataset.number for listed in sides for dataset in listed}
        every = np.union1d(nodes, np.fromiter(around, np.int32, len(around))).astype(np.int32)
        names = graph.identities.display_names(every.tolist(), reader, as_sent=True)
        self.usual_names: dict[int, NodeId] = {node: name.id for node, name in names.items()}
        self.names = dict(self.usual_names)
        if asked is not None:  # a client searches for the id that it requested
            self.names[graph.identities.canonical(asked.node)] = node_of(asked)
        members, places = graph.identities.every_name(every)
        self._members: defaultdict[int, list[int]] = defaultdict(list)
        for member, place in zip(members.tolist(), places.tolist(), strict=True):
            self._members[int(every[place])].append(member)
        self._records = reader.nodes.records(members.tolist())
        self._facets = reader.facets.of_each(members.tolist())
        self.written_at = _last_written(view, every)

    def dataset_names(self, datasets: Iterable[JobDataset]) -> tuple[MarquezName, ...]:
        """Return the names of datasets, sorted."""
        nodes = (self.names[dataset.number] for dataset in datasets)
        return tuple(sorted(MarquezName(node.namespace, node.name) for node in nodes))

    def canonical(self, number: int) -> int:
        """Return the canonical number of a dataset, from the number of any of its names."""
        return self._identities.canonical(number)

    def record(self, number: int) -> NodeRecord:
        """Return a node with the first and last time that any of its names was seen."""
        members = self._members[number]
        if len(members) == 1:
            return self._records[members[0]]
        records = [self._records[member] for member in members]
        return NodeRecord(
            self.names[number],
            min(record.first_at for record in records),
            max(record.last_at for record in records),
        )

    def facets(self, number: int) -> dict[str, bytes]:
        """Return the current facets of a node under all its names; the shown name comes first."""
        members = self._members[number]
        if len(members) == 1:
            return self._facets.get(members[0], {})
        shown = self.names[number]
        members = sorted(members, key=lambda member: self._records[member].id == shown)
        return {
            name: body for member in members for name, body in self._facets.get(member, {}).items()
        }


class RunFacts:
    """The latest run of each job, with its facets and those of its inputs and outputs."""

    def __init__(self, view: CatalogSnapshot, jobs: Iterable[int]) -> None:
        latest = view.reader.runs.latest_of_each(jobs, 1)
        self.latest: dict[int, Run] = {job: runs[0] for job, runs in latest.items()}
        numbers = [run.number for run in self.latest.values()]
        self.facets: defaultdict[int, list[RunFacet]] = defaultdict(list)
        for facet in view.reader.run_history.facets(numbers):
            self.facets[facet.run].append(facet)


def node_of(entity: Entity) -> NodeId:
    """Return the requested dataset or job; for a column its dataset."""
    return entity.id.dataset if isinstance(entity.id, ColumnId) else entity.id


def _datasets_of(view: CatalogSnapshot, nodes: Ints, kind: EdgeKind) -> dict[int, list[JobDataset]]:
    """Return the datasets that jobs read or write, each once, in the order of their numbers."""
    graph = view.graph.nodes
    ends, writes = graph.flow.ends, kind == EdgeKind.WRITES
    edges, places = (ends.leaving if writes else ends.entering).of_each(nodes)
    chosen = graph.flow.kind[edges] == kind
    edges, places = edges[chosen], places[chosen]
    far = graph.identities.canonicals((ends.target if writes else ends.source)[edges])
    job_datasets: dict[int, dict[int, JobDataset]] = {}
    for job, dataset, first_at, last_at in zip(
        nodes[places].tolist(),
        far.tolist(),
        graph.flow.first_at.of(edges).tolist(),
        graph.flow.last_at.of(edges).tolist(),
        strict=True,
    ):
        listed = job_datasets.setdefault(job, {})
        known = listed.get(dataset)
        if known is not None:
            first_at, last_at = min(first_at, known.first_at), max(last_at, known.last_at)
        listed[dataset] = JobDataset(dataset, first_at, last_at)
    return {
        job: [listed[dataset] for dataset in sorted(listed)] for job, listed in job_datasets.items()
    }


def _last_written(view: CatalogSnapshot, nodes: Ints) -> dict[int, int]:
    """Return when a job last wrote each dataset that any job writes."""
    graph = view.graph.nodes
    names, owners = graph.identities.every_name(nodes)
    edges, places = graph.flow.ends.entering.of_each(names)
    writes = graph.flow.kind[edges] == EdgeKind.WRITES
    datasets = nodes[owners[places[writes]]]
    times = graph.flow.last_at.of(edges[writes])
    last_writes: dict[int, int] = {}
    for dataset, at in zip(datasets.tolist(), times.tolist(), strict=True):
        last_writes[dataset] = max(at, last_writes.get(dataset, 0))
    return last_writes
