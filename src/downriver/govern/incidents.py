"""Incident reports: failures, their start, possible causes upstream, and affected entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from downriver.govern.drift.series import DAY
from downriver.govern.suspects import (
    WEIGHTS,
    IncidentInputs,
    SuspectRanking,
    last_success_of,
)
from downriver.graph import Entity
from downriver.model.answers import Direction, is_complete
from downriver.model.governance import FindingKind, Incident, UpstreamFreshness
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.openlineage.wire import parse_time, render_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.govern.drift import Inspector
    from downriver.model.answers import TraceNode
    from downriver.model.governance import Finding

_LOOKED_AT = 400  # upstream nodes that are checked, the nearest first
_FRESHNESS = 30  # datasets upstream whose freshness is listed, the nearest first
_SHOWN = 50
_HOUR = 3_600_000_000
_BROKEN = frozenset(
    {
        FindingKind.DATASET_DROPPED,
        FindingKind.RUN_FAILED,
        FindingKind.RUN_LATE,
        FindingKind.QUALITY_FAILED,
    }
)
_RUN_KINDS = frozenset({FindingKind.RUN_FAILED, FindingKind.RUN_LATE})
_CHANGE_KINDS = frozenset(
    {
        FindingKind.DATASET_DROPPED,
        FindingKind.COLUMN_ADDED,
        FindingKind.COLUMN_DROPPED,
        FindingKind.COLUMN_RENAMED,
        FindingKind.COLUMN_RETYPED,
        FindingKind.CODE_CHANGED,
    }
)


def report_incident(entity: Entity, scene: IncidentInputs) -> Incident:
    """Return the incident report of an entity."""
    whole = _whole(entity)
    upstream = scene.around.trace(whole, Direction.UPSTREAM, _LOOKED_AT)
    downstream = scene.around.downstream(entity, _SHOWN)
    inspector = scene.inspect_at(scene.now)
    failures = _own_findings(entity, scene, inspector)
    since = min((f.first_seen for f in failures), default=None)
    on_the_way = _columns_on_the_way(entity, scene)
    failing_nodes = {entity.node, *_jobs_at(entity, scene)}  # whose findings are the failures
    nodes = [
        (node, number)
        for node in upstream.nodes
        if (number := scene.around.number(node)) is not None
    ]
    others = [(node.id, number) for node, number in nodes if number not in failing_nodes]
    current = _inspect(others, inspector)
    found_at, scene = _with_earlier(current, others, since, scene)
    ranking = SuspectRanking(upstream, scene, since, on_the_way)
    suspects = ranking.rank(found_at, {node.id: number for node, number in nodes})
    last_success = last_success_of(_jobs_at(entity, scene), scene)
    noticed = [*failures, *(finding for findings in found_at.values() for finding in findings)]
    affected = [
        scene.around.affected(node) for node in downstream.nodes if node.id != downstream.root.id
    ]
    owners = scene.around.owners(entity.node)
    spots = [*upstream.blind_spots, *downstream.blind_spots]
    incident = Incident(
        entity=str(entity.id),
        kind=_kind(entity),
        at=render_time(scene.now),
        status=_status(failures),
        summary="",
        since=since,
        failures=failures,
        last_success=last_success,
        last_written=_last_written(entity, scene),
        suspects=suspects,
        looked_at=len(upstream.nodes) - 1,
        affected_count=len(affected) + downstream.omitted_count,
        affected=affected,
        owners=owners,
        owners_to_tell=sorted({o for each in affected for o in each.owners} - set(owners)),
        freshness=_freshness(nodes, current, scene),
        runs=[finding for finding in noticed if finding.kind in _RUN_KINDS],
        violations=[f for f in noticed if f.kind is FindingKind.QUALITY_FAILED],
        changes=_changes(noticed, last_success),
        complete=is_complete(spots),
        blind_spots=spots,
    )
    incident.summary = _summary(incident)
    return incident


def _inspect(nodes: Iterable[tuple[str, int]], inspector: Inspector) -> dict[str, list[Finding]]:
    """Return the findings of nodes that have any, by id."""
    return {name: findings for name, number in nodes if (findings := inspector.inspect(number))}


def _with_earlier(
    current: dict[str, list[Finding]],
    nodes: Sequence[tuple[str, int]],
    since: str | None,
    scene: IncidentInputs,
) -> tuple[dict[str, list[Finding]], IncidentInputs]:
    """Add the findings at the time when the failure began, if that is long ago.

    A change upstream becomes the new baseline after some days, but it is still the cause of a
    failure that continues. Evidence is then as old as the failure, not as old as the report.
    """
    began = scene.now if since is None else parse_time(since, "since") + _HOUR
    if began > scene.now - DAY:
        return current, scene
    found = dict(current)
    for name, findings in _inspect(nodes, scene.inspect_at(began)).items():
        known = {finding.id for finding in current.get(name, ())}
        found[name] = [*current.get(name, ()), *(f for f in findings if f.id not in known)]
    return found, scene._replace(old=scene.old - (scene.now - began))


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


def _own_findings(entity: Entity, scene: IncidentInputs, inspector: Inspector) -> list[Finding]:
    """Return the findings of an entity, and of the jobs that write it."""
    findings = inspector.inspect(entity.node)
    if isinstance(entity.id, ColumnId):
        field = entity.id.field.casefold()
        findings = [f for f in findings if not f.subject or field in _words(f)]
    for job in _jobs_at(entity, scene):
        if job != entity.node:
            findings += [f for f in inspector.inspect(job) if f.kind in WEIGHTS]
    return sorted(findings, key=lambda f: (-f.severity.rank, -WEIGHTS[f.kind], f.first_seen, f.id))


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
    answer = scene.around.trace(entity, Direction.UPSTREAM, _LOOKED_AT)
    if len(answer.nodes) == 1:
        return None
    return frozenset(str(DatasetId(node.namespace, node.name)) for node in answer.nodes)


def _changes(findings: Iterable[Finding], last_success: str | None) -> list[Finding]:
    """Return the changes of schemas and code since the last success of an entity."""
    since = None if last_success is None else parse_time(last_success, "last_success")
    return [
        finding
        for finding in findings
        if finding.kind in _CHANGE_KINDS
        and (since is None or parse_time(finding.first_seen, "first_seen") >= since)
    ]


def _freshness(
    nodes: Sequence[tuple[TraceNode, int]],
    findings: Mapping[str, Sequence[Finding]],
    scene: IncidentInputs,
) -> list[UpstreamFreshness]:
    """Return when the nearest datasets upstream were last written."""
    freshness: list[UpstreamFreshness] = []
    late = {id_ for id_, each in findings.items() if any(f.kind in _RUN_KINDS for f in each)}
    shown = {number: node.id for node, number in nodes}
    for node, number in nodes:
        if node.kind != "dataset" or not node.depth or len(freshness) == _FRESHNESS:
            continue
        at = scene.around.last_written(number, scene.now)
        writers = {shown.get(job, "") for job in scene.around.writers(number)}
        freshness.append(
            UpstreamFreshness(
                dataset=node.id,
                distance=abs(node.depth),
                last_written=None if at is None else render_time(at),
                age_hours=None if at is None else round((scene.now - at) / _HOUR, 1),
                late=bool(writers & late),
            )
        )
    return freshness


def _status(failures: Iterable[Finding]) -> Literal["failing", "drifting", "healthy"]:
    kinds = {finding.kind for finding in failures}
    if kinds & _BROKEN:
        return "failing"
    return "drifting" if kinds else "healthy"


def _last_written(entity: Entity, scene: IncidentInputs) -> str | None:
    if isinstance(entity.id, JobId):
        return None
    at = scene.around.last_written(entity.node, scene.now)
    return None if at is None else render_time(at)


def _summary(incident: Incident) -> str:
    if not incident.failures and not incident.suspects:
        return "no findings for this entity or upstream of it"
    parts = [incident.failures[0].message if incident.failures else "no findings for this entity"]
    if incident.since:
        parts.append(f"since {incident.since}")
    if incident.suspects:
        first = incident.suspects[0]
        parts.append(f"most likely cause: {first.id}: {first.findings[0].message}")
    parts.append(f"{incident.affected_count} downstream")
    return "; ".join(parts)
