"""Reads the facts of a lake from its files, without Spark, to merge them into a store.

A store numbers the nodes and runs that a fact refers to. So each part that is yielded also contains
these nodes and runs, and the bodies of its facets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.lake import schemas
from downriver.lake.schemas import KIND_OF
from downriver.model.facts import (
    FROM_JOB,
    TO_JOB,
    ClaimSeen,
    EdgeKind,
    EdgeSeen,
    EventRef,
    EvidenceRank,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
    RunFact,
    RunState,
    Span,
)
from downriver.model.ids import DatasetId, JobId, NodeId, NodeKind, RunId
from downriver.openlineage.facets.column_lineage import parse_edges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import StoredRun

Row = tuple[Any, ...]

# A store derives columns and derivations from the bodies of facets.
READ_TABLES = (
    schemas.NODES,
    schemas.EDGES,
    schemas.RUNS,
    schemas.FACETS,
    schemas.CLAIMS,
    schemas.BODIES,
)
_ROWS_AT_ONCE = 20_000
_FACTS_OF_PART = 20_000
_BODY_BYTES_OF_PART = 32 * 2**20
_BODY_BYTES_AT_ONCE = 64 * 2**20  # on disk, where bodies are compressed
_DIGESTS = 256  # values of the first byte of a digest


class FactRuns(NamedTuple):
    """Runs of the tables of facts by table: those to read, and all to look up nodes and runs in."""

    new: Mapping[str, Sequence[StoredRun]]
    known: Mapping[str, Sequence[StoredRun]]


def read_parts(folder: Folder, runs: FactRuns) -> Iterator[Facts]:
    """Yield the facts of new runs in parts that can be merged one by one."""
    reader = _FactReader(folder, runs)
    yield from reader.nodes_and_edges()
    yield from reader.runs_of_jobs()
    yield from reader.facets_and_claims()


class _FactReader:
    def __init__(self, folder: Folder, runs: FactRuns) -> None:
        self._folder = folder
        self._new = runs.new
        self._known = runs.known
        self._nodes: dict[NodeId, Span] = {}
        for kind, *names, at, event, last_at, last_event, observed in self._rows(
            schemas.NODES, runs.known
        ):
            node = _node(kind, *names)
            span = _span(at, event, last_at, last_event, observed)
            before = self._nodes.get(node)
            self._nodes[node] = span if before is None else before.merge(span)
        self._runs: dict[RunId, RunFact] = {}
        for row in self._rows(schemas.RUNS, runs.known):
            run, fact = _run(row)
            known = self._runs.get(run)
            self._runs[run] = fact if known is None else known.merge(fact)

    def nodes_and_edges(self) -> Iterator[Facts]:
        part = _Part(self._nodes, self._runs)
        for kind, namespace, name, *_ in self._rows(schemas.NODES, self._new):
            part.add_node(_node(kind, namespace, name))
            yield from part.taken_if_full()
        for row in self._rows(schemas.EDGES, self._new):
            edge, span = _edge(row)
            part.add(edge, span, edge.source, edge.target, edge.via)
            yield from part.taken_if_full()
        yield part.take()

    def runs_of_jobs(self) -> Iterator[Facts]:
        part = _Part(self._nodes, self._runs)
        for row in self._rows(schemas.RUNS, self._new):
            part.add_run(RunId(JobId(row[0], row[1]), row[2]))
            yield from part.taken_if_full()
        yield part.take()

    def facets_and_claims(self) -> Iterator[Facts]:
        """Yield facets with their bodies, in groups by the first byte of the digest."""
        size = sum(self._folder.size(run.path) for run in self._known[schemas.BODIES.name])
        groups = min(_DIGESTS, 1 + size // _BODY_BYTES_AT_ONCE)
        for group in range(groups):
            yield from self._group(group, groups)

    def _group(self, group: int, groups: int) -> Iterator[Facts]:
        def is_in(digest: bytes) -> bool:
            return digest[0] % groups == group

        facets = [row for row in self._rows(schemas.FACETS, self._new) if is_in(row[8])]
        claims = [row for row in self._rows(schemas.CLAIMS, self._new) if is_in(row[5])]
        wanted = {row[8] for row in facets} | {row[5] for row in claims}
        bodies = {
            digest: body
            for digest, body in self._rows(schemas.BODIES, self._known)
            if digest in wanted
        }
        part = _Part(self._nodes, self._runs)
        for row in facets:
            facet, span = _facet(row)
            if facet.run is not None:
                part.add_run(facet.run)
            part.add(facet, span, facet.node)
            part.add_body(facet.digest, bodies[facet.digest])
            yield from part.taken_if_full()
        for row in claims:
            claim, span = _claim(row)
            body = bodies[claim.digest]
            sources = parse_edges(claim.facet, body, claim.dataset).datasets
            part.add(claim, span, claim.job, claim.dataset, *sources)
            part.add_body(claim.digest, body)
            yield from part.taken_if_full()
        yield part.take()

    def _rows(self, table: LakeTable, runs: Mapping[str, Sequence[StoredRun]]) -> Iterator[Row]:
        for run in runs.get(table.name, ()):
            yield from _scan(self._folder, table, run)


def _scan(folder: Folder, table: LakeTable, run: StoredRun) -> Iterator[Row]:
    """Yield the rows of a table in a run."""
    if run.folded:
        kind = KIND_OF[table.name]
        for batch in folder.scan(run.path, [kind], _ROWS_AT_ONCE):
            column = batch.column(0)
            facts = column.filter(column.is_valid())
            yield from zip(*(part.to_pylist() for part in facts.flatten()), strict=True)
        return
    for batch in folder.scan(run.path, table.column_names, _ROWS_AT_ONCE):
        columns = (batch.column(name).to_pylist() for name in table.column_names)
        yield from zip(*columns, strict=True)


class _Part:
    """Facts that are merged together, with the nodes and runs that they refer to."""

    def __init__(self, nodes: Mapping[NodeId, Span], runs: Mapping[RunId, RunFact]) -> None:
        self._nodes = nodes
        self._runs = runs
        self._facts = Facts.empty()
        self._bytes = 0

    def add_node(self, node: NodeId) -> None:
        self._facts.sightings[NodeSeen(node)] = self._nodes[node]

    def add_run(self, run: RunId) -> None:
        self._facts.runs[run] = self._runs[run]
        self.add_node(run.job)

    def add(
        self, seen: EdgeSeen | FacetSeen | ClaimSeen, span: Span, *nodes: NodeId | None
    ) -> None:
        before = self._facts.sightings.get(seen)
        self._facts.sightings[seen] = span if before is None else before.merge(span)
        for node in nodes:
            if node is not None:
                self.add_node(node)

    def add_body(self, digest: bytes, body: bytes) -> None:
        if digest not in self._facts.bodies:
            self._facts.bodies[digest] = body
            self._bytes += len(body)

    def taken_if_full(self) -> Iterator[Facts]:
        if len(self._facts.sightings) >= _FACTS_OF_PART or self._bytes >= _BODY_BYTES_OF_PART:
            yield self.take()

    def take(self) -> Facts:
        facts, self._facts, self._bytes = self._facts, Facts.empty(), 0
        return facts


def _node(kind: int, namespace: str, name: str) -> NodeId:
    return (JobId if kind == NodeKind.JOB else DatasetId)(namespace, name)


def _job(namespace: str | None, name: str | None) -> JobId | None:
    return None if namespace is None or name is None else JobId(namespace, name)


def _span(
    first_at: int, first_event: bytes, last_at: int, last_event: bytes, observed: bool
) -> Span:
    certainty = EvidenceRank.OBSERVED if observed else EvidenceRank.DECLARED
    return Span(EventRef(first_at, first_event), EventRef(last_at, last_event), certainty)


def _edge(row: Row) -> tuple[EdgeSeen, Span]:
    number, source_in, source, target_in, target, via_in, via, *span = row
    kind = EdgeKind(number)
    source_id = _node(kind in FROM_JOB, source_in, source)
    target_id = _node(kind in TO_JOB, target_in, target)
    return EdgeSeen(kind, source_id, target_id, _job(via_in, via)), _span(*span)


def _run(row: Row) -> tuple[RunId, RunFact]:
    namespace, name, run, state, state_at, started_at, *span = row
    fact = RunFact(RunState(state), state_at, started_at, _span(*span))
    return RunId(JobId(namespace, name), run), fact


def _facet(row: Row) -> tuple[FacetSeen, Span]:
    role, kind, namespace, name, job_in, job, run, facet, digest, *span = row
    made_by = _job(job_in, job)
    of_run = None if made_by is None else RunId(made_by, run)
    node = _node(kind, namespace, name)
    return FacetSeen(FacetRole(role), node, of_run, facet, digest), _span(*span)


def _claim(row: Row) -> tuple[ClaimSeen, Span]:
    job_in, job, namespace, name, facet, digest, *span = row
    claim = ClaimSeen(_job(job_in, job), DatasetId(namespace, name), facet, digest)
    return claim, _span(*span)
