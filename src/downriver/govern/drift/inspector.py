"""Runs all drift rules on one dataset or job."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from downriver.govern.drift.code import CODE_FACETS, find_code_drift
from downriver.govern.drift.edges import JobEdge, JobEdgeHistory, find_claim_drift, find_edge_drift
from downriver.govern.drift.lifecycle import DatasetEdges, find_dropped
from downriver.govern.drift.measures import DatasetMeasures
from downriver.govern.drift.runs import JobHistory, expect_next, find_run_trouble
from downriver.govern.drift.schema import SchemaHistory, find_schema_drift
from downriver.govern.drift.series import DAY, DriftLimits
from downriver.model.facts import EdgeKind, EventRef, RunState, Span
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.dataset import LIFECYCLE, SCHEMA
from downriver.openlineage.facets.job import ERROR_MESSAGE, NOMINAL_TIME
from downriver.openlineage.wire import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.govern.drift.runs import DueTime, JobSchedule
    from downriver.graph import GraphSnapshot
    from downriver.model.governance import Finding
    from downriver.store import CatalogReader
    from downriver.store.catalog.history import FacetVersion, JobRun

_MEASURES = 2000  # the last facets of a dataset that are looked at
_RUNS = 300
_VERBS = {int(EdgeKind.READS): "reads", int(EdgeKind.WRITES): "writes"}


class Inspector:
    """Finds drift at one moment, in one view of a store."""

    def __init__(
        self,
        graph: GraphSnapshot,
        reader: CatalogReader,
        limits: DriftLimits,
        now: int,
        schedules: Mapping[str, JobSchedule] | None = None,
        *,
        old_failures: bool = False,
    ) -> None:
        self._nodes = graph.nodes
        self._retired = graph.retired
        self._reader = reader
        self._limits = limits
        self._now = now
        self._settled_at = now - int(limits.settle_days * DAY)
        self._schedules = schedules or {}
        self._old_failures = old_failures
        self._job_names: dict[int, str] = {}
        self._due: dict[int, DueTime | None] = {}

    def inspect(self, node: int) -> list[Finding]:
        """Return the findings of a dataset or job."""
        node = self._nodes.identities.canonical(node)
        node_id = self._nodes.identities.display_names([node], self._reader)[node].id
        if isinstance(node_id, JobId):
            return list(self._of_job(node, node_id))
        return list(self._of_dataset(node, node_id))

    def late_at(self, node: int) -> int | None:
        """Return the moment from which the next run of an inspected job is late."""
        due = self._due.get(node)
        return None if due is None else due.at + due.tolerance

    def _of_dataset(self, node: int, dataset: DatasetId) -> Iterator[Finding]:
        names = self._nodes.identities.group(node)
        history = self._reader.history
        schemas: list[FacetVersion] = []
        for name in names:
            schemas += self._versions_until_now(history.facet_versions(name, SCHEMA))
        claims = self._claims_on(names)
        if len(schemas) > 1:
            schema_history = SchemaHistory(
                dataset, schemas, [v for of_job in claims.values() for v in of_job]
            )
            yield from find_schema_drift(schema_history, self._limits, self._settled_at)
        yield from self._claim_drift(dataset, claims)
        yield from self._dropped(dataset, names)
        measures = [m for name in names for m in history.measures(name, _MEASURES, self._now)]
        measures.sort(key=lambda m: (m.at, m.name))
        measured = DatasetMeasures(dataset, measures, self._name_of_job)
        yield from measured.findings(self._limits, self._now, old_failures=self._old_failures)

    def _dropped(self, dataset: DatasetId, names: list[int]) -> Iterator[Finding]:
        """Yield a finding if the dataset was dropped. It settles, but not in incident reports."""
        versions = [v for n in names for v in self._reader.history.facet_versions(n, LIFECYCLE)]
        known = self._versions_until_now(versions)
        finding = find_dropped(dataset, known, self._edges_of(names)) if known else None
        if finding is None:
            return
        if self._old_failures or parse_time(finding.first_seen, "first_seen") >= self._settled_at:
            yield finding

    def _edges_of(self, names: list[int]) -> DatasetEdges:
        flow, here = self._nodes.flow, np.array(names, np.int32)
        entering, leaving = flow.ends.entering.of(here), flow.ends.leaving.of(here)
        writes = entering[flow.kind[entering] == EdgeKind.WRITES]
        reads = leaving[flow.kind[leaving] == EdgeKind.READS]
        seen = zip(flow.first_at.of(writes).tolist(), flow.last_at.of(writes).tolist(), strict=True)
        readers = set(flow.ends.target[reads].tolist()) - self._retired
        return DatasetEdges(
            tuple((first, min(last, self._now)) for first, last in seen if first <= self._now),
            len(readers),
        )

    def _claims_on(self, names: list[int]) -> dict[int, list[FacetVersion]]:
        """Return the column lineage of a dataset by each job, under any of its names."""
        edges = self._nodes.flow.ends.entering.of(np.array(names, np.int32))
        claims: dict[int, list[FacetVersion]] = {}
        for job in sorted({0, *self._nodes.jobs(edges).tolist()}):
            for name in names:
                versions = self._reader.history.claims(job, name).get(name, [])
                claims[job] = [*claims.get(job, ()), *self._versions_until_now(versions)]
        return claims

    def _claim_drift(
        self, dataset: DatasetId, claims: dict[int, list[FacetVersion]]
    ) -> Iterator[Finding]:
        for job, versions in claims.items():
            if job and len(versions) > 1:
                runs = self._begun(self._reader.history.runs(job, _RUNS, self._now))
                done = sum(run.state is RunState.COMPLETE for run in runs)
                name = self._reader.nodes.by_ids([job])[job]
                if isinstance(name, JobId):
                    yield from find_claim_drift(name, dataset, versions, done, self._settled_at)

    def _of_job(self, node: int, job: JobId) -> Iterator[Finding]:
        history = self._reader.history
        runs = self._begun(history.runs(node, _RUNS, self._now))
        judged = self._job_history(node, job, runs)
        due = self._due[node] = expect_next(judged, self._limits.lateness)
        yield from find_run_trouble(
            judged, due, self._limits.lateness, self._now, old_failures=self._old_failures
        )
        edges = JobEdgeHistory(job, list(self._edges(node)), runs)
        yield from find_edge_drift(edges, self._limits, self._settled_at)
        begun = [run.began_at for run in runs]
        for facet in CODE_FACETS:
            versions = self._versions_until_now(history.facet_versions(node, facet))
            if len(versions) > 1:
                yield from find_code_drift(job, facet, versions, begun, self._settled_at)

    # The catalog as of the moment: later events are ignored.

    def _versions_until_now(self, versions: list[FacetVersion]) -> list[FacetVersion]:
        return [
            version._replace(span=self._until_now(version.span))
            for version in versions
            if version.span.first.at <= self._now
        ]

    def _until_now(self, span: Span) -> Span:
        if span.last.at <= self._now:
            return span
        return Span(span.first, EventRef(self._now, span.last.digest), span.certainty)

    def _begun(self, runs: list[JobRun]) -> list[JobRun]:
        begun = [run for run in runs if run.began_at <= self._now]
        return [
            run
            if run.state_at <= self._now
            else run._replace(state=RunState.RUNNING, state_at=run.began_at)
            for run in begun
        ]

    def _job_history(self, node: int, job: JobId, runs: list[JobRun]) -> JobHistory:
        """Return the runs of a job with their facets and schedule."""
        history = self._reader.history
        bad = [run.number for run in runs[-20:]]
        return JobHistory(
            job,
            runs,
            history.run_facets(node, ERROR_MESSAGE, bad),
            history.run_facets(node, NOMINAL_TIME, [run.number for run in runs]),
            self._schedule(job),
        )

    def _schedule(self, job: JobId) -> JobSchedule | None:
        for pattern, schedule in self._schedules.items():
            if fnmatchcase(job.name, pattern) or fnmatchcase(str(job), pattern):
                return schedule
        return None

    def _edges(self, job: int) -> Iterator[JobEdge]:
        flow, here = self._nodes.flow, np.array([job], np.int32)
        leaving, entering = flow.ends.leaving.of(here), flow.ends.entering.of(here)
        numbers = np.concatenate([leaving, entering])
        far = [
            *flow.ends.target[leaving].tolist(),
            *flow.ends.source[entering].tolist(),
        ]
        names = self._reader.nodes.by_ids(far)
        ids, kinds = flow.id[numbers].tolist(), flow.kind[numbers].tolist()
        spans = self._reader.evidence.edges(ids)
        for number, kind, other in zip(ids, kinds, far, strict=True):
            dataset = names[other]
            span = spans[number]
            if kind in _VERBS and isinstance(dataset, DatasetId) and span.first.at <= self._now:
                yield JobEdge(_VERBS[kind], dataset, self._until_now(span))

    def _name_of_job(self, job: int) -> str | None:
        if not job:
            return None
        if job not in self._job_names:
            self._job_names[job] = str(self._reader.nodes.by_ids([job])[job])
        return self._job_names[job]
