"""`fold(event) -> facts`: the one place where an event becomes lineage.

The function is pure, and the order of events does not matter. A missing part means "unknown", not
"none": an event without inputs does not mean that the job has none. The events of one run
accumulate, because facts merge.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import UNSET

from downriver.model.facts import (
    ClaimSeen,
    EdgeKind,
    EdgeSeen,
    EvidenceRank,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
    RunFact,
    RunState,
    Sighting,
    Span,
)
from downriver.model.ids import DatasetId, JobId, NodeId, RunId, bounded
from downriver.openlineage.facets.base import dataset_id, facet_digest, job_id
from downriver.openlineage.facets.column_lineage import (
    COLUMN_LINEAGE,
    LINEAGE,
    column_sources,
    parse_job_lineage,
    parse_lineage,
)
from downriver.openlineage.facets.custom import INFERRED
from downriver.openlineage.facets.dataset import (
    LIFECYCLE,
    SAME,
    SYMLINKS,
    VERSION,
    parse_previous_name,
    parse_same,
    parse_symlinks,
)
from downriver.openlineage.facets.job import (
    JOB_DEPENDENCIES,
    PARENT,
    parse_dependencies,
    parse_parents,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from downriver.openlineage.facets.column_lineage import LineageEntry
    from downriver.openlineage.wire import Event, RawFacets, WireDataset, WireEvent, WireJob


def fold(event: Event) -> Facts:
    """Return the facts of one event."""
    return _Folding(event).facts()


def _certainty(wire: WireEvent) -> EvidenceRank:
    if wire.run is not UNSET:
        return EvidenceRank.OBSERVED
    inferred = wire.job is not UNSET and INFERRED in (wire.job.facets or {})
    return EvidenceRank.INFERRED if inferred else EvidenceRank.DECLARED


class _Folding:
    """The fold of one event; all sightings in it share one span."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.span = Span(event.ref, event.ref, _certainty(event.wire))
        self.sightings: dict[Sighting, Span] = {}
        self.runs: dict[RunId, RunFact] = {}
        self.bodies: dict[bytes, bytes] = {}
        self.inputs: set[DatasetId] = set()  # the inputs of the event, under all their names

    def facts(self) -> Facts:
        wire = self.event.wire
        if wire.job is not UNSET:
            self._job(wire.job, wire)
        if wire.dataset is not UNSET:
            self._dataset(wire.dataset, None)
        return Facts(self.sightings, self.runs, self.bodies)

    def _add(self, sighting: Sighting) -> None:
        self.sightings[sighting] = self.span

    def _edge(
        self, kind: EdgeKind, source: NodeId, target: NodeId, via: JobId | None = None
    ) -> None:
        self._add(NodeSeen(source))
        self._add(NodeSeen(target))
        self._add(EdgeSeen(kind, source, target, via))

    def _job(self, wire: WireJob, event: WireEvent) -> None:
        job = job_id(wire.namespace, wire.name)
        self._add(NodeSeen(job))
        self._facets(FacetRole.NODE, job, None, wire.facets)
        self._job_order(job, wire.facets or {})  # declared by code, without a run
        run = self._run(job, event)
        covered = self._job_lineage(job, wire.facets)
        for item in event.inputs or ():
            dataset = self._dataset(item, run)
            self._version(FacetRole.INPUT, dataset, run, item)
            self._edge(EdgeKind.READS, dataset, job)
            self.inputs.update((dataset, *_aliases(item.facets)))
        for item in event.outputs or ():
            dataset = self._dataset(item, run, job, covered)
            self._version(FacetRole.OUTPUT, dataset, run, item)
            self._edge(EdgeKind.WRITES, job, dataset)

    def _run(self, job: JobId, event: WireEvent) -> RunId | None:
        if event.run is UNSET:
            return None
        run = RunId(job, bounded(event.run.runId))
        state, at = self.event.state, self.event.ref.at
        started = at if state is RunState.START else None
        self.runs[run] = RunFact(state, at, started, self.span)
        self._facets(FacetRole.RUN, job, run, event.run.facets)
        self._job_order(job, event.run.facets or {})
        return run

    def _job_order(self, job: JobId, facets: RawFacets) -> None:
        """Add the edges to the jobs that a job runs in, and to those it runs before or after."""
        if (raw := facets.get(PARENT)) is not None:
            for outer, inner in pairwise([*parse_parents(bytes(raw)), job]):
                if outer != inner:
                    self._edge(EdgeKind.PARENT, outer, inner)
        if (raw := facets.get(JOB_DEPENDENCIES)) is not None:
            dependencies = parse_dependencies(bytes(raw))
            for before in dependencies.upstream:
                self._edge(EdgeKind.PRECEDES, before, job)
            for after in dependencies.downstream:
                self._edge(EdgeKind.PRECEDES, job, after)

    def _dataset(
        self,
        wire: WireDataset,
        run: RunId | None,
        writer: JobId | None = None,
        covered: Container[DatasetId] = (),
    ) -> DatasetId:
        dataset = dataset_id(wire.namespace, wire.name)
        self._add(NodeSeen(dataset))
        if wire.facets:
            digests = self._facets(FacetRole.NODE, dataset, None, wire.facets)
            self._identity(dataset, wire.facets)
            if dataset not in covered:
                self._claims(dataset, digests, writer)
        self._facets(FacetRole.INPUT, dataset, run, wire.inputFacets)
        self._facets(FacetRole.OUTPUT, dataset, run, wire.outputFacets)
        return dataset

    def _facets(
        self, role: FacetRole, node: NodeId, run: RunId | None, facets: RawFacets | None
    ) -> dict[str, bytes]:
        digests = {}
        for name, raw in (facets or {}).items():
            body = bytes(raw)
            digest = digests[name] = facet_digest(body)
            self.bodies[digest] = body
            self._add(FacetSeen(role, node, run, bounded(name), digest))
        return digests

    def _version(
        self, role: FacetRole, dataset: DatasetId, run: RunId | None, wire: WireDataset
    ) -> None:
        """Add the version of a dataset that this run read or wrote; runs may differ in it."""
        if run is not None and wire.facets and (raw := wire.facets.get(VERSION)) is not None:
            self._facets(role, dataset, run, {VERSION: raw})

    def _identity(self, dataset: DatasetId, facets: RawFacets) -> None:
        """Add the edges to the other names of a dataset."""
        if (raw := facets.get(SYMLINKS)) is not None:
            # An alias edge to itself records when the facet was last seen. A name that a later
            # facet does not contain was then removed.
            self._edge(EdgeKind.ALIAS, dataset, dataset)
            for alias in parse_symlinks(bytes(raw)):
                self._edge(EdgeKind.ALIAS, dataset, alias)
        if (raw := facets.get(LIFECYCLE)) is not None:
            old_name = parse_previous_name(bytes(raw))
            if old_name is not None:
                self._edge(EdgeKind.RENAMED, old_name, dataset)
        if (raw := facets.get(SAME)) is not None and (statement := parse_same(bytes(raw))):
            other, is_same = statement
            # Both orders of the names give one direction, so that a later statement replaces the
            # edge.
            kind = EdgeKind.SAME if is_same else EdgeKind.DIFFERENT
            self._edge(kind, min(dataset, other), max(dataset, other))

    def _claims(self, dataset: DatasetId, digests: dict[str, bytes], job: JobId | None) -> None:
        """Add the sources that a dataset's own facets state; `lineage` replaces `columnLineage`."""
        if digest := digests.get(LINEAGE):
            self._explicit(dataset, parse_lineage(self.bodies[digest]), job)
            self._add(ClaimSeen(job, dataset, "lineage", digest))
        elif digest := digests.get(COLUMN_LINEAGE):
            self._add(ClaimSeen(job, dataset, "columnLineage", digest))
            for source in column_sources(digest, self.bodies[digest]):
                # An event that names its inputs states that the job reads no other dataset. A
                # column may still derive from another dataset through a view or an earlier step.
                if job is None or (self.inputs and source not in self.inputs):
                    self._edge(EdgeKind.DERIVES, source, dataset, job)
                else:
                    self._edge(EdgeKind.READS, source, job)

    def _job_lineage(self, job: JobId, facets: RawFacets | None) -> set[DatasetId]:
        """Add what a job's lineage facet states; return the datasets that it covers."""
        raw = (facets or {}).get(LINEAGE)
        if raw is None:
            return set()
        body = bytes(raw)
        targets = set()
        for entry in parse_job_lineage(body):
            if entry.type.upper() == "JOB":
                self._job_entry(job, entry)
            elif entry.name:
                target = dataset_id(entry.namespace or "", entry.name)
                self._explicit(target, entry, job)
                self._add(ClaimSeen(job, target, "lineage-entry", facet_digest(body)))
                targets.add(target)
        return targets

    def _job_entry(self, job: JobId, entry: LineageEntry) -> None:
        reader = job_id(entry.namespace or "", entry.name) if entry.name else job
        for source in entry.sources():
            if dataset := source.dataset():
                self._edge(EdgeKind.READS, dataset, reader)

    def _explicit(self, target: DatasetId, entry: LineageEntry, job: JobId | None) -> None:
        """Connect `target` with exactly the sources that an explicit lineage names."""
        if job is not None:
            self._edge(EdgeKind.WRITES, job, target)
            if entry.inputs is not None or entry.fields:
                self._add(EdgeSeen(EdgeKind.EXPLICIT, job, target))
        for source in entry.sources():
            dataset = source.dataset()
            if dataset is not None:
                self._edge(EdgeKind.DERIVES, dataset, target, job)
                if job is not None:
                    self._edge(EdgeKind.READS, dataset, job)
            elif source.type.upper() == "JOB" and source.name:
                self._edge(EdgeKind.WRITES, job_id(source.namespace or "", source.name), target)


def _aliases(facets: RawFacets | None) -> list[DatasetId]:
    raw = (facets or {}).get(SYMLINKS)
    return [] if raw is None else parse_symlinks(bytes(raw))
