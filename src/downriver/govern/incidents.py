"""Incident reports: what failed, since when, possible causes upstream, and who is affected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.graph import Entity
from downriver.model.answers import Direction, is_complete
from downriver.model.facts import RunState
from downriver.model.governance import FindingKind, Incident, IncidentSuspect
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.openlineage.wire import parse_time, render_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.govern.drift import Inspector
    from downriver.govern.entity_context import EntityContext
    from downriver.model.answers import Trace, TraceNode
    from downriver.model.governance import Finding
    from downriver.store import CatalogReader

_LOOKED_AT = 400  # upstream nodes that are checked, the nearest first
_SHOWN = 50
_SUSPECTS = 20
_RUNS = 50
_BROKEN = frozenset({FindingKind.RUN_FAILED, FindingKind.RUN_LATE, FindingKind.QUALITY_FAILED})
# How likely each kind of finding is the cause of a failure downstream.
_WEIGHTS = {
    FindingKind.RUN_FAILED: 0.9,
    FindingKind.COLUMN_DROPPED: 0.85,
    FindingKind.COLUMN_RENAMED: 0.85,
    FindingKind.RUN_LATE: 0.75,
    FindingKind.QUALITY_FAILED: 0.75,
    FindingKind.ROW_COUNT_SHIFT: 0.75,
    FindingKind.COLUMN_RETYPED: 0.65,
    FindingKind.NULL_RATE_SHIFT: 0.65,
    FindingKind.EDGE_VANISHED: 0.5,
    FindingKind.DISTRIBUTION_SHIFT: 0.5,
    FindingKind.EDGE_APPEARED: 0.2,
    FindingKind.COLUMN_ADDED: 0.15,
}
_FARTHER = 0.9  # factor for each job between
_AFTERWARDS = 0.4  # factor if it began after the failure
_OLD = 0.4  # factor if its last evidence is old
_BESIDE = 0.6  # factor if it is not a source of the column
_SLACK = 3_600_000_000  # clocks differ, and a cause may be found after its effect


class IncidentInputs(NamedTuple):
    """The inputs of an incident report."""

    reader: CatalogReader
    inspector: Inspector
    around: EntityContext
    now: int
    old: int  # what was last seen before this moment is an unlikely cause


def report_incident(entity: Entity, scene: IncidentInputs) -> Incident:
    """Return the incident report of an entity."""
    whole = _whole(entity)
    upstream = scene.around.trace(whole, Direction.UPSTREAM, _LOOKED_AT)
    downstream = scene.around.downstream(entity, _SHOWN)
    failures = _own_findings(entity, scene)
    since = min((f.first_seen for f in failures), default=None)
    on_the_way = _columns_on_the_way(entity, scene)
    failing_nodes = {entity.node, *_jobs_at(entity, scene)}  # whose findings are the failures
    suspects = _suspects(upstream, scene, since, on_the_way, failing_nodes)
    affected = [
        scene.around.affected(node) for node in downstream.nodes if node.id != downstream.root.id
    ]
    owners = scene.around.owners(entity.node)
    spots = [*upstream.blind_spots, *downstream.blind_spots]
    found = Incident(
        entity=str(entity.id),
        kind=_kind(entity),
        at=render_time(scene.now),
        status=_status(failures),
        summary="",
        since=since,
        failures=failures,
        last_success=_last_success(_jobs_at(entity, scene), scene),
        last_written=_last_written(entity, scene),
        suspects=suspects,
        looked_at=len(upstream.nodes) - 1,
        affected_count=len(affected) + downstream.omitted_count,
        affected=affected,
        owners=owners,
        owners_to_tell=sorted({o for each in affected for o in each.owners} - set(owners)),
        complete=is_complete(spots),
        blind_spots=spots,
    )
    found.summary = _summary(found)
    return found


def _kind(entity: Entity) -> str:
    match entity.id:
        case ColumnId():
            return "column"
        case JobId():
            return "job"
        case _:
            return "dataset"


def _whole(entity: Entity) -> Entity:
    if isinstance(entity.id, ColumnId):
        return Entity(entity.id.dataset, entity.node)
    return entity


def _own_findings(entity: Entity, scene: IncidentInputs) -> list[Finding]:
    """Return the findings of an entity, and of the jobs that write it."""
    found = scene.inspector.inspect(entity.node)
    if isinstance(entity.id, ColumnId):
        field = entity.id.field.casefold()
        found = [f for f in found if not f.subject or field in _words(f)]
    for job in _jobs_at(entity, scene):
        if job != entity.node:
            found += [f for f in scene.inspector.inspect(job) if f.kind in _WEIGHTS]
    return sorted(found, key=lambda f: (-f.severity.rank, -_WEIGHTS[f.kind], f.first_seen, f.id))


def _words(finding: Finding) -> set[str]:
    words = finding.subject.casefold().split()
    return set(words) if finding.kind is not FindingKind.ROW_COUNT_SHIFT else {*words, "*"}


def _jobs_at(entity: Entity, scene: IncidentInputs) -> list[int]:
    if isinstance(entity.id, JobId):
        return [entity.node]
    return scene.around.writers(entity.node)


def _columns_on_the_way(entity: Entity, scene: IncidentInputs) -> frozenset[str] | None:
    """Return the datasets upstream of a column, None when the entity is not a column."""
    if entity.column is None:
        return None
    found = scene.around.trace(entity, Direction.UPSTREAM, _LOOKED_AT)
    if len(found.nodes) == 1:
        return None
    return frozenset(str(DatasetId(node.namespace, node.name)) for node in found.nodes)


def _suspects(
    upstream: Trace,
    scene: IncidentInputs,
    since: str | None,
    on_the_way: frozenset[str] | None,
    failing_nodes: set[int],
) -> list[IncidentSuspect]:
    found: list[IncidentSuspect] = []
    for node in upstream.nodes:
        number = scene.around.number(node)
        if number is None or number in failing_nodes:
            continue
        findings = scene.inspector.inspect(number)
        if findings:
            beside = on_the_way is not None and node.kind == "dataset" and node.id not in on_the_way
            found.append(_suspect(node, number, findings, scene, since, beside=beside))
    return sorted(found, key=lambda s: (-s.score, s.distance, s.id))[:_SUSPECTS]


def _suspect(
    node: TraceNode,
    number: int,
    findings: Sequence[Finding],
    scene: IncidentInputs,
    since: str | None,
    *,
    beside: bool,
) -> IncidentSuspect:
    distance = abs(node.depth)
    innocent = 1.0
    reasons: list[str] = []
    for finding in sorted(findings, key=lambda f: (-_WEIGHTS[f.kind], f.first_seen, f.id)):
        weight = _WEIGHTS[finding.kind] * _FARTHER**distance * (_BESIDE if beside else 1.0)
        afterwards = _is_after(finding.first_seen, since)
        weight *= _OLD if _last_seen(finding) < scene.old else 1.0
        innocent *= 1 - weight * (_AFTERWARDS if afterwards else 1.0)
        later = ", after this failure began" if afterwards else ""
        reasons.append(f"{finding.message} (since {finding.first_seen}{later})")
    return IncidentSuspect(
        id=node.id,
        kind=node.kind,
        distance=distance,
        score=round(1 - innocent, 3),
        reasons=reasons,
        since=min(finding.first_seen for finding in findings),
        findings=list(findings),
        owners=scene.around.owners(number),
        last_success=_last_success([number], scene) if node.kind == "job" else None,
    )


def _last_seen(finding: Finding) -> int:
    moments = [finding.first_seen, *(evidence.at for evidence in finding.evidence)]
    return max(parse_time(moment, "at") for moment in moments)


def _is_after(moment: str, since: str | None) -> bool:
    if since is None:
        return False
    return parse_time(moment, "first_seen") > parse_time(since, "since") + _SLACK


def _status(failures: Iterable[Finding]) -> Literal["failing", "drifting", "healthy"]:
    kinds = {finding.kind for finding in failures}
    if kinds & _BROKEN:
        return "failing"
    return "drifting" if kinds else "healthy"


def _last_success(jobs: Iterable[int], scene: IncidentInputs) -> str | None:
    ends = [
        run.state_at
        for job in jobs
        for run in scene.reader.history.runs(job, _RUNS, scene.now)
        if run.state is RunState.COMPLETE and run.state_at <= scene.now
    ]
    return render_time(max(ends)) if ends else None


def _last_written(entity: Entity, scene: IncidentInputs) -> str | None:
    if isinstance(entity.id, JobId):
        return None
    at = scene.around.last_written(entity.node, scene.now)
    return None if at is None else render_time(at)


def _summary(found: Incident) -> str:
    if not found.failures and not found.suspects:
        return "no findings for this entity or upstream of it"
    parts = [found.failures[0].message if found.failures else "no findings for this entity"]
    if found.since:
        parts.append(f"since {found.since}")
    if found.suspects:
        first = found.suspects[0]
        parts.append(f"most likely cause: {first.id}: {first.findings[0].message}")
    parts.append(f"{found.affected_count} downstream")
    return "; ".join(parts)
