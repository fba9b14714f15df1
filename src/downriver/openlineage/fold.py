"""`fold(event) -> facts`: the one place where an event becomes lineage.

Pure and order-free. What an event leaves out says nothing: an event with no inputs does not mean
the job has none. Events of one run accumulate because their facts merge.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import UNSET

from downriver.model.facts import (
    ClaimSeen,
    EdgeKind,
    EdgeSeen,
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
from downriver.openlineage.facets import base as f
from downriver.openlineage.facets.column_lineage import column_sources

if TYPE_CHECKING:
    from collections.abc import Container

    from downriver.openlineage.wire import Event, RawFacets, WireDataset, WireEvent, WireJob


def fold(event: Event) -> Facts:
    """Return everything one event tells."""
    return _Folding(event).facts()


class _Folding:
    """One event being folded: every sighting in it shares one span."""

    def __init__(self, event: Event) -> None:
        self.event = event
        observed = event.wire.run is not UNSET
        self.span = Span(event.ref, event.ref, observed)
        self.sightings: dict[Sighting, Span] = {}
        self.runs: dict[RunId, RunFact] = {}
        self.bodies: dict[bytes, bytes] = {}

    def facts(self) -> Facts:
        wire = self.event.wire
        if wire.job is not UNSET:
            self._job(wire.job, wire)
        if wire.dataset is not UNSET:
            self._dataset(wire.dataset, None)
        return Facts(self.sightings, self.runs, self.bodies)

    def _see(self, sighting: Sighting) -> None:
        self.sightings[sighting] = self.span

    def _edge(
        self, kind: EdgeKind, source: NodeId, target: NodeId, via: JobId | None = None
    ) -> None:
        self._see(NodeSeen(source))
        self._see(NodeSeen(target))
        self._see(EdgeSeen(kind, source, target, via))

    def _job(self, wire: WireJob, event: WireEvent) -> None:
        job = f.job_id(wire.namespace, wire.name)
        self._see(NodeSeen(job))
        self._facets(FacetRole.NODE, job, None, wire.facets)
        self._job_order(job, wire.facets or {})  # code declares it without a run
        run = self._run(job, event)
        spoken_for = self._job_lineage(job, wire.facets)
        for item in event.inputs or ():
            self._edge(EdgeKind.READS, self._dataset(item, run), job)
        for item in event.outputs or ():
            self._edge(EdgeKind.WRITES, job, self._dataset(item, run, job, spoken_for))

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
        """Place a job under its parent and among the jobs it waits for or triggers."""
        if (raw := facets.get("parent")) is not None:
            facet = f.read_facet(bytes(raw), f.ParentFacet)
            line = [*_jobs([facet.root or f.JobReference(), f.JobReference(facet.job)]), job]
            for upper, lower in pairwise(line):
                if upper != lower:
                    self._edge(EdgeKind.PARENT, upper, lower)
        if (raw := facets.get("jobDependencies")) is not None:
            dependencies = f.read_facet(bytes(raw), f.JobDependenciesFacet)
            for before in _jobs(dependencies.upstream):
                self._edge(EdgeKind.PRECEDES, before, job)
            for after in _jobs(dependencies.downstream):
                self._edge(EdgeKind.PRECEDES, job, after)

    def _dataset(
        self,
        wire: WireDataset,
        run: RunId | None,
        writer: JobId | None = None,
        spoken_for: Container[DatasetId] = (),
    ) -> DatasetId:
        dataset = f.dataset_id(wire.namespace, wire.name)
        self._see(NodeSeen(dataset))
        if wire.facets:
            digests = self._facets(FacetRole.NODE, dataset, None, wire.facets)
            self._identity(dataset, wire.facets)
            if dataset not in spoken_for:
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
            digest = digests[name] = f.facet_digest(body)
            self.bodies[digest] = body
            self._see(FacetSeen(role, node, run, bounded(name), digest))
        return digests

    def _identity(self, dataset: DatasetId, facets: RawFacets) -> None:
        """Note the other names a dataset goes by."""
        if (raw := facets.get("symlinks")) is not None:
            # Its own alias first: this dates the facet, so that a name a later one leaves out,
            # or deletes, is known to be gone.
            self._edge(EdgeKind.ALIAS, dataset, dataset)
            for other in f.read_facet(bytes(raw), f.SymlinksFacet).identifiers or ():
                if other.name:
                    alias = f.dataset_id(other.namespace, other.name)
                    self._edge(EdgeKind.ALIAS, dataset, alias)
        if (raw := facets.get("lifecycleStateChange")) is not None:
            change = f.read_facet(bytes(raw), f.LifecycleFacet)
            old = change.previousIdentifier
            if change.lifecycleStateChange.upper() == "RENAME" and old and old.name:
                self._edge(EdgeKind.RENAMED, f.dataset_id(old.namespace, old.name), dataset)

    def _claims(self, dataset: DatasetId, digests: dict[str, bytes], job: JobId | None) -> None:
        """Note what a dataset's own facets say it derives from; `lineage` supersedes the other."""
        if digest := digests.get("lineage"):
            self._explicit(dataset, f.read_facet(self.bodies[digest], f.LineageEntry), job)
            self._see(ClaimSeen(job, dataset, "lineage", digest))
        elif digest := digests.get("columnLineage"):
            self._see(ClaimSeen(job, dataset, "columnLineage", digest))
            for source in column_sources(digest, self.bodies[digest]):
                if job is None:
                    self._edge(EdgeKind.DERIVES, source, dataset)
                else:
                    self._edge(EdgeKind.READS, source, job)

    def _job_lineage(self, job: JobId, facets: RawFacets | None) -> set[DatasetId]:
        """Note what a job's lineage facet says; return the datasets it speaks for."""
        raw = (facets or {}).get("lineage")
        if raw is None:
            return set()
        body = bytes(raw)
        targets = set()
        for entry in f.read_facet(body, f.JobLineageFacet).entries or ():
            if entry.type.upper() == "JOB":
                self._job_entry(job, entry)
            elif entry.name:
                target = f.dataset_id(entry.namespace or "", entry.name)
                self._explicit(target, entry, job)
                self._see(ClaimSeen(job, target, "lineage-entry", f.facet_digest(body)))
                targets.add(target)
        return targets

    def _job_entry(self, job: JobId, entry: f.LineageEntry) -> None:
        reader = f.job_id(entry.namespace or "", entry.name) if entry.name else job
        for source in entry.sources():
            if dataset := source.dataset():
                self._edge(EdgeKind.READS, dataset, reader)

    def _explicit(self, target: DatasetId, entry: f.LineageEntry, job: JobId | None) -> None:
        """Join exactly the datasets an explicit lineage names, instead of all with all."""
        if job is not None:
            self._edge(EdgeKind.WRITES, job, target)
            if entry.inputs is not None or entry.fields:
                self._see(EdgeSeen(EdgeKind.EXPLICIT, job, target))
        for source in entry.sources():
            dataset = source.dataset()
            if dataset is not None:
                self._edge(EdgeKind.DERIVES, dataset, target, job)
                if job is not None:
                    self._edge(EdgeKind.READS, dataset, job)
            elif source.type.upper() == "JOB" and source.name:
                self._edge(EdgeKind.WRITES, f.job_id(source.namespace or "", source.name), target)


def _jobs(references: list[f.JobReference] | None) -> list[JobId]:
    return [
        f.job_id(reference.job.namespace, reference.job.name)
        for reference in references or ()
        if reference.job and reference.job.name
    ]
