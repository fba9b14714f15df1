"""Edges of a job that appeared or vanished."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.drift.schema import began_at_event, find_version_change
from downriver.model.facts import RunState
from downriver.model.governance import Evidence, Finding, FindingKind, Severity
from downriver.model.ids import EVERY_FIELD
from downriver.openlineage.facets.column_lineage import parse_derivations
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.govern.drift.series import DriftLimits
    from downriver.model.facts import EventRef, Span
    from downriver.model.ids import DatasetId, JobId
    from downriver.store.catalog.history import FacetVersion, JobRun

_VERBS = {"reads": ("now reads", "no longer reads"), "writes": ("now writes", "no longer writes")}
_FEW = 3
_LISTED = 20


class JobEdge(NamedTuple):
    """One side of a job: its inputs or its outputs."""

    verb: str  # reads or writes
    dataset: DatasetId
    span: Span


class JobEdgeHistory(NamedTuple):
    """All edges of a job, and its runs in the order in which they were first seen."""

    job: JobId
    edges: list[JobEdge]
    runs: list[JobRun]


def find_edge_drift(
    history: JobEdgeHistory, limits: DriftLimits, settled_at: int
) -> Iterator[Finding]:
    """Yield the edges of a job that appeared or vanished since `settled_at`."""
    done = [run for run in history.runs if run.state is RunState.COMPLETE]
    for verb in _VERBS:
        side = [edge for edge in history.edges if edge.verb == verb]
        if _rotates(side, done):
            continue
        for edge in sorted(side, key=lambda edge: edge.dataset):
            finding = _appeared(history.job, edge, side, done, limits.vanished_after_runs)
            finding = finding or _vanished(
                history.job, edge, side, done, limits.vanished_after_runs
            )
            if finding is not None and finding[0] > settled_at:
                yield finding[1]


def _rotates(side: Sequence[JobEdge], done: Sequence[JobRun]) -> bool:
    """Return whether a job uses another dataset in nearly every run, such as a folder a day."""
    return len(side) > _FEW and len(side) > len(done) / 2


def _appeared(
    job: JobId, edge: JobEdge, side: Sequence[JobEdge], done: Sequence[JobRun], needed: int
) -> tuple[int, Finding] | None:
    first = edge.span.first
    before = [run for run in done if run.state_at < first.at]
    others = [other for other in side if other.span.first < first]
    if not others or (edge.span.observed and len(before) < needed):
        return None
    run = next((r for r in done if r.began_at <= first.at <= r.state_at), None)
    times = f", which did not occur in the {len(before)} runs before" if before else ""
    message = f"{_VERBS[edge.verb][0]} {edge.dataset}{times}"
    return first.at, _finding(FindingKind.EDGE_APPEARED, job, edge, message, first, run)


def _vanished(
    job: JobId, edge: JobEdge, side: Sequence[JobEdge], done: Sequence[JobRun], needed: int
) -> tuple[int, Finding] | None:
    last = edge.span.last
    since = [run for run in done if run.began_at > last.at]
    during = [run for run in done if edge.span.first.at <= run.state_at and run not in since]
    if not edge.span.observed or len(since) < needed or len(during) < needed:
        return None
    if all(other.span.last.at < since[-1].began_at for other in side):
        return None  # these runs name no dataset on this side, so the edge is unknown
    first = since[0]
    message = (
        f"{_VERBS[edge.verb][1]} {edge.dataset}: "
        f"last seen {render_time(last.at)}, not in the {len(since)} runs since"
    )
    finding = _finding(FindingKind.EDGE_VANISHED, job, edge, message, last, None)
    finding.first_seen = render_time(first.began_at)
    finding.evidence.append(
        Evidence(
            event=first.last_event.hex(),
            at=render_time(first.began_at),
            job=str(job),
            run=first.run,
        )
    )
    return first.began_at, finding


def _finding(
    kind: FindingKind, job: JobId, edge: JobEdge, message: str, ref: EventRef, run: JobRun | None
) -> Finding:
    appeared = kind is FindingKind.EDGE_APPEARED
    return Finding(
        kind=kind,
        entity=str(job),
        subject=f"{edge.verb} {edge.dataset}",
        severity=Severity.INFO if appeared else Severity.WARNING,
        message=message,
        first_seen=render_time(ref.at),
        evidence=[
            Evidence(
                event=ref.digest.hex(),
                at=render_time(ref.at),
                job=str(job),
                run=None if run is None else run.run,
            )
        ],
    )


def find_claim_drift(
    job: JobId,
    dataset: DatasetId,
    claims: Sequence[FacetVersion],
    done: int,
    settled_at: int,
) -> Iterator[Finding]:
    """Yield the sources that columns gained or lost; added and dropped columns are left out.

    `done` is the number of completed runs. A job whose lineage changes in nearly every run gives
    no finding.
    """
    turn = find_version_change(claims, settled_at)
    if turn is None or (len(claims) > _FEW and len(claims) > done / 2):
        return
    edges = {v.digest: _column_edges(v, dataset) for v in (turn.before, *turn.between, *turn.alive)}
    before, now = edges[turn.before.digest], edges[turn.now.digest]
    alive = frozenset().union(*(edges[v.digest] for v in turn.alive))
    stayed = {column for column, _ in before} & {column for column, _ in now}
    for kind, found in (
        (FindingKind.EDGE_APPEARED, now - before),
        (FindingKind.EDGE_VANISHED, before - alive),
    ):
        there = kind is FindingKind.EDGE_APPEARED
        stable_edges = sorted(edge for edge in found if edge[0] in stayed)
        if stable_edges:
            holds = [
                all((edge in edges[v.digest]) == there for edge in stable_edges)
                for v in turn.between
            ]
            yield _claimed(kind, job, dataset, stable_edges, began_at_event(turn, holds))


def _column_edges(version: FacetVersion, dataset: DatasetId) -> frozenset[tuple[str, str]]:
    return frozenset(
        (d.target.field, f"{d.source.dataset.name}.{d.source.field}")
        for d in parse_derivations(version.facet, version.body, dataset)
        if d.direct and EVERY_FIELD not in (d.target.field, d.source.field)
    )


def _claimed(
    kind: FindingKind,
    job: JobId,
    dataset: DatasetId,
    edges: Sequence[tuple[str, str]],
    since: EventRef,
) -> Finding:
    """Return one finding for all columns, because a rewritten query changes many at once."""
    appeared = kind is FindingKind.EDGE_APPEARED
    at = render_time(since.at)
    column, source = edges[0]
    more = f", and {len(edges) - 1} more" if len(edges) > 1 else ""
    return Finding(
        kind=kind,
        entity=str(dataset),
        subject=f"columns by {job}",
        severity=Severity.INFO if appeared else Severity.WARNING,
        message=f"column {column} {'now' if appeared else 'no longer'} derives from {source}{more}",
        first_seen=at,
        state=", ".join(f"{column} <- {source}" for column, source in edges),
        why=[f"{column} <- {source}" for column, source in edges[:_LISTED]],
        evidence=[Evidence(event=since.digest.hex(), at=at, job=str(job))],
    )
