"""Ranks the possible causes of an incident.

A suspect is a node with findings. A finding that another one upstream explains is an effect, not a
cause: the score counts it less. Column lineage decides whether a finding of a column explains
another.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from downriver.graph.names.resolution import find_entity
from downriver.model.answers import Direction
from downriver.model.facts import RunState
from downriver.model.governance import FindingKind, IncidentSuspect
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.wire import parse_time, render_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from downriver.govern.drift import Inspector
    from downriver.govern.entity_context import EntityContext
    from downriver.model.answers import Trace, TraceNode
    from downriver.model.governance import Finding
    from downriver.store import CatalogReader

_SUSPECTS = 20
_RUNS = 50
_COLUMNS = 2000  # nodes of a column trace
# The probability that a finding of each kind causes a failure downstream.
WEIGHTS = {
    FindingKind.RUN_FAILED: 0.9,
    FindingKind.DATASET_DROPPED: 0.9,
    FindingKind.COLUMN_DROPPED: 0.85,
    FindingKind.COLUMN_RENAMED: 0.85,
    FindingKind.RUN_LATE: 0.75,
    FindingKind.QUALITY_FAILED: 0.75,
    FindingKind.ROW_COUNT_SHIFT: 0.75,
    FindingKind.COLUMN_RETYPED: 0.65,
    FindingKind.NULL_RATE_SHIFT: 0.65,
    FindingKind.CODE_CHANGED: 0.6,
    FindingKind.EDGE_VANISHED: 0.5,
    FindingKind.DISTRIBUTION_SHIFT: 0.5,
    FindingKind.EDGE_APPEARED: 0.2,
    FindingKind.COLUMN_ADDED: 0.15,
}
_FARTHER = 0.97  # factor for each job between
_AFTERWARDS = 0.4  # factor if it began after the failure
_OLD = 0.4  # factor if its last evidence is old
_BESIDE = 0.6  # factor if it is not a source of the column
_EXPLAINED = 0.3  # factor if a finding upstream explains it
_HARMLESS = 0.3  # factor for changed code that is an unlikely cause
_SLACK = 3_600_000_000  # clocks differ, and a cause may be detected after its effect

_SCHEMA = frozenset(
    {
        FindingKind.DATASET_DROPPED,
        FindingKind.COLUMN_DROPPED,
        FindingKind.COLUMN_RENAMED,
        FindingKind.COLUMN_RETYPED,
    }
)
_RUN = frozenset({FindingKind.RUN_FAILED, FindingKind.RUN_LATE})
_VALUES = frozenset(
    {
        FindingKind.ROW_COUNT_SHIFT,
        FindingKind.NULL_RATE_SHIFT,
        FindingKind.DISTRIBUTION_SHIFT,
        FindingKind.QUALITY_FAILED,
    }
)
_CODE = frozenset({FindingKind.CODE_CHANGED})
_EDGES = frozenset({FindingKind.EDGE_APPEARED, FindingKind.EDGE_VANISHED})
# The kinds of findings upstream that explain a kind of finding.
_EXPLAINED_BY = {
    **dict.fromkeys(_VALUES, _VALUES | _RUN | _SCHEMA | _CODE),
    FindingKind.RUN_FAILED: _RUN | _SCHEMA | {FindingKind.NULL_RATE_SHIFT},
    FindingKind.RUN_LATE: _RUN | _SCHEMA,
    **dict.fromkeys({*_SCHEMA, FindingKind.COLUMN_ADDED}, _SCHEMA | _CODE),
    **dict.fromkeys(_EDGES, _SCHEMA | _CODE | _RUN),
}
_BAD_INPUT = _VALUES | _RUN | _SCHEMA
_OF_COLUMNS = (_SCHEMA - {FindingKind.DATASET_DROPPED}) | {
    FindingKind.NULL_RATE_SHIFT,
    FindingKind.DISTRIBUTION_SHIFT,
}


class IncidentInputs(NamedTuple):
    """The inputs of an incident report."""

    reader: CatalogReader
    inspect_at: Callable[[int], Inspector]  # an inspector of the state at a moment
    around: EntityContext
    now: int
    old: int  # evidence from before this moment is an unlikely cause


class SuspectRanking:
    """Scores the findings upstream of an entity."""

    def __init__(
        self,
        upstream: Trace,
        scene: IncidentInputs,
        since: str | None,
        on_the_way: frozenset[str] | None,
    ) -> None:
        self._upstream = upstream
        self._scene = scene
        self._since = since
        self._on_the_way = on_the_way  # the datasets upstream of a column, if it is about one
        self._columns: dict[str, frozenset[str] | None] = {}

    def rank(
        self, findings: Mapping[str, Sequence[Finding]], numbers: Mapping[str, int]
    ) -> list[IncidentSuspect]:
        """Return the suspects, the most likely cause first, given the findings by node."""
        suspects = [
            self._suspect(node, findings, numbers[node.id])
            for node in self._upstream.nodes
            if node.id in findings
        ]
        return sorted(suspects, key=lambda s: (-s.score, -s.distance, s.id))[:_SUSPECTS]

    def _suspect(
        self, node: TraceNode, findings: Mapping[str, Sequence[Finding]], number: int
    ) -> IncidentSuspect:
        distance = abs(node.depth)
        on_the_way = self._on_the_way
        beside = on_the_way is not None and node.kind == "dataset" and node.id not in on_the_way
        innocent = 1.0
        reasons: list[str] = []
        own = sorted(findings[node.id], key=lambda f: (-WEIGHTS[f.kind], f.first_seen, f.id))
        for finding in own:
            weight = WEIGHTS[finding.kind] * _FARTHER**distance * (_BESIDE if beside else 1.0)
            weight *= _OLD if _last_seen(finding) < self._scene.old else 1.0
            remarks = [f"since {finding.first_seen}"]
            if self._is_after_failure(finding):
                weight *= _AFTERWARDS
                remarks.append("after this failure began")
            if cause := self._explanation(node, finding, findings):
                weight *= _EXPLAINED
                remarks.append(f"explained by {cause}")
            if finding.kind in _CODE and (why := self._why_unlikely(node, finding, findings)):
                weight *= _HARMLESS
                remarks.append(why)
            innocent *= 1 - weight
            reasons.append(f"{finding.message} ({', '.join(remarks)})")
        return IncidentSuspect(
            id=node.id,
            kind=node.kind,
            distance=distance,
            score=round(1 - innocent, 3),
            reasons=reasons,
            since=min(finding.first_seen for finding in own),
            findings=list(own),
            owners=self._scene.around.owners(number),
            last_success=last_success_of([number], self._scene) if node.kind == "job" else None,
        )

    def _is_after_failure(self, finding: Finding) -> bool:
        return (
            self._since is not None and _onset(finding) > parse_time(self._since, "since") + _SLACK
        )

    def _explanation(
        self, node: TraceNode, finding: Finding, findings: Mapping[str, Sequence[Finding]]
    ) -> str | None:
        """Return the nearest node upstream with a finding that explains this one."""
        kinds = _EXPLAINED_BY.get(finding.kind, frozenset())
        began = _onset(finding) + _SLACK
        for other in self._ancestors.get(node.id, ()):
            for cause in findings.get(other, ()):
                if (
                    cause.kind in kinds
                    and _onset(cause) <= began
                    and self._may_affect(cause, finding)
                ):
                    return other
        return None

    def _may_affect(self, cause: Finding, effect: Finding) -> bool:
        """Return whether the column of one finding may affect the column of another.

        Findings of whole datasets and jobs may affect all columns downstream. Any column may cause
        missing rows.
        """
        if cause.kind not in _OF_COLUMNS or effect.kind not in _OF_COLUMNS:
            return True
        sources = self._sources(effect)
        if sources is None:
            return True
        dataset, names = cause.entity.removeprefix("dataset:"), cause.subject.split()
        reached = (f"column:{dataset}:{name}".casefold() for name in (*names, "*"))
        return any(column in sources for column in reached)

    def _sources(self, finding: Finding) -> frozenset[str] | None:
        """Return the columns upstream of the column of a finding; None if they are unknown."""
        key = f"{finding.entity} {finding.subject}"
        if key not in self._columns:
            self._columns[key] = self._trace_columns(finding)
        return self._columns[key]

    def _trace_columns(self, finding: Finding) -> frozenset[str] | None:
        scene = self._scene
        resolved = find_entity(finding.entity, scene.reader, scene.around.identities)
        if resolved is None or not isinstance(resolved.id, DatasetId) or not finding.subject:
            return None
        column = scene.reader.columns.find(resolved.node, finding.subject.split()[0])
        if column is None:
            return None
        entity = resolved._replace(id=ColumnId(resolved.id, column[1]), column=column[0])
        traced = scene.around.trace(entity, Direction.UPSTREAM, _COLUMNS)
        if len(traced.nodes) == 1:
            return None
        return frozenset(node.id.casefold() for node in traced.nodes)

    def _why_unlikely(
        self, node: TraceNode, finding: Finding, findings: Mapping[str, Sequence[Finding]]
    ) -> str:
        """Return why changed code is an unlikely cause, empty if it is a likely one.

        It is unlikely if its outputs upstream have no finding, or if its inputs were bad already.
        """
        outputs = {edge.target for edge in self._upstream.edges if edge.source == node.id}
        if outputs and not outputs & {self._upstream.root.id, *findings}:
            return "its output did not change"
        began = _onset(finding) + _SLACK
        for other in self._ancestors[node.id]:
            for cause in findings.get(other, ()):
                if cause.kind in _BAD_INPUT and _onset(cause) <= began:
                    return f"after a finding of {other}"
        return ""

    @cached_property
    def _ancestors(self) -> dict[str, list[str]]:
        """The nodes upstream of each node, the nearest first."""
        entering: dict[str, list[str]] = defaultdict(list)
        for edge in self._upstream.edges:
            entering[edge.target].append(edge.source)
        ancestors: dict[str, list[str]] = {}
        for node in self._upstream.nodes:
            seen: dict[str, None] = {node.id: None}
            waiting = [node.id]
            for target in waiting:  # grows
                fresh = [source for source in sorted(entering[target]) if source not in seen]
                seen.update(dict.fromkeys(fresh))
                waiting += fresh
            ancestors[node.id] = list(seen)[1:]
        return ancestors


def last_success_of(jobs: Iterable[int], scene: IncidentInputs) -> str | None:
    """Return when a run of these jobs last completed."""
    ends = [
        run.state_at
        for job in jobs
        for run in scene.reader.history.runs(job, _RUNS, scene.now)
        if run.state is RunState.COMPLETE and run.state_at <= scene.now
    ]
    return render_time(max(ends)) if ends else None


def _last_seen(finding: Finding) -> int:
    moments = [finding.first_seen, *(evidence.at for evidence in finding.evidence)]
    return max(parse_time(moment, "at") for moment in moments)


def _onset(finding: Finding) -> int:
    """Return when a problem began: a run is late from the time at which it was due."""
    due = finding.expected if finding.kind is FindingKind.RUN_LATE else None
    return parse_time(due or finding.first_seen, "at")
