"""Compares findings with triggers along the graph."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.govern.checks.lineage_facts import LineageFacts
from downriver.govern.triggers.config import names_of
from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.answers.node_facts import NodeFactsReader
from downriver.graph.names.resolution import find_entity
from downriver.model.answers import BlindSpot, Direction
from downriver.model.ids import ColumnId, DatasetId
from downriver.model.trust.triggers import TriggerCause, TriggeredAction
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.govern.entity_context import EntityContext
    from downriver.govern.triggers.config import TriggerRule
    from downriver.graph import CatalogSnapshot
    from downriver.graph.answers.node_facts import NodeFacts
    from downriver.model.answers import Trace
    from downriver.model.governance import Finding
    from downriver.model.ids import NodeId

_NODES = 100_000
_SHOWN = 300  # characters of an action
Certainty = Literal["column", "dataset"]


class ReachedNode(NamedTuple):
    """A dataset or job downstream of a finding, and the shortest path to it."""

    certainty: Certainty
    path: tuple[str, ...]


class TriggerMatches(NamedTuple):
    """The actions that findings start, and the parts of the lineage that are unknown."""

    actions: list[TriggeredAction]
    blind_spots: list[BlindSpot]


class _LocatedFinding(NamedTuple):
    finding: Finding
    entity: Entity
    columns: list[Entity]

    @property
    def names(self) -> tuple[str, ...]:
        return names_of(self.entity.id)


def match_triggers(
    view: CatalogSnapshot,
    around: EntityContext,
    rules: Sequence[TriggerRule],
    findings: Iterable[Finding],
    now: int,
) -> TriggerMatches:
    """Return one action for each trigger and target, with all findings that lead to it."""
    matching = _FindingReach(view, around)
    causes: dict[tuple[str, int], list[TriggerCause]] = defaultdict(list)
    for finding in findings:
        located = matching.locate(finding)
        if located is None:
            continue
        columns = [entity.id for entity in located.columns if isinstance(entity.id, ColumnId)]
        started = [rule for rule in rules if rule.when.covers(finding, located.names, columns)]
        if not started:
            continue
        reached = matching.reach(located)
        known = matching.known(reached)
        for rule in started:
            for node, facts in known.items():
                if rule.downstream.covers(matching.names[node], facts):
                    causes[rule.name, node].append(_cause(finding, reached[node]))
    by_name = {rule.name: rule for rule in rules}
    actions = [
        matching.action(by_name[name], node, found, now) for (name, node), found in causes.items()
    ]
    actions.sort(key=lambda action: (action.trigger, action.target))
    return TriggerMatches(actions, matching.blind_spots)


class _FindingReach:
    """The entities downstream of findings, in one view of a store."""

    def __init__(self, view: CatalogSnapshot, around: EntityContext) -> None:
        self._view = view
        self._around = around
        self._identities = view.graph.nodes.identities
        self._known: dict[int, NodeFacts] = {}
        self.names: dict[int, NodeId] = {}
        self._spots: dict[tuple[str, str, str], BlindSpot] = {}

    @cached_property
    def _facts(self) -> LineageFacts:
        return LineageFacts(self._view.graph, self._view.reader)

    @property
    def blind_spots(self) -> list[BlindSpot]:
        """The blind spots of the traced lineage."""
        return [self._spots[key] for key in sorted(self._spots)]

    def locate(self, finding: Finding) -> _LocatedFinding | None:
        """Return the entity of a finding and the columns that it is about; None if unknown now."""
        reader = self._view.reader
        entity = find_entity(finding.entity, reader, self._identities)
        if entity is None:
            return None
        columns: dict[int, Entity] = {}
        if isinstance(entity.id, DatasetId):
            for word in (finding.subject, *finding.subject.split()):
                column = reader.columns.find(entity.node, word)
                if column is not None:
                    columns[column[0]] = Entity(
                        ColumnId(entity.id, column[1]), entity.node, column[0]
                    )
        return _LocatedFinding(finding, entity, list(columns.values()))

    def reach(self, located: _LocatedFinding) -> dict[int, ReachedNode]:
        """Return the datasets and jobs downstream of a finding.

        The finding of a column follows the column, and jobs without column lineage.
        """
        if not located.columns:
            return self._reach_of_dataset(located.entity)
        own = self._identities.canonical(located.entity.node)
        holding: dict[int, ReachedNode] = {}
        for column in located.columns:
            answer = self._trace(column)
            for id_, path in _shortest_paths(answer).items():
                entity = find_entity(id_, self._view.reader, self._identities)
                if entity is not None:
                    node = self._identities.canonical(entity.node)
                    holding.setdefault(node, ReachedNode("column", path))
        holding.setdefault(own, ReachedNode("column", (str(located.columns[0].id),)))
        reached = {**self._possible_targets(holding), **holding}
        jobs = self._jobs(reached)
        del reached[own]
        return {**jobs, **reached}

    def _possible_targets(self, holding: Mapping[int, ReachedNode]) -> dict[int, ReachedNode]:
        """Return the datasets that may use a column, behind jobs without column lineage."""
        writing = self._facts.possible_outputs(set(holding))
        reached_nodes: dict[int, ReachedNode] = {}
        waiting = dict.fromkeys(writing)
        while waiting:
            before = len(waiting)
            for node in list(waiting):
                for job in sorted(writing[node]):
                    path = self._path_to(job, {**holding, **reached_nodes})
                    if path is not None:
                        reached_nodes[node] = ReachedNode(
                            "dataset", (*path, self._facts.name(job), self._facts.name(node))
                        )
                        del waiting[node]
                        break
            if len(waiting) == before:
                break
        for node in reached_nodes:
            jobs = ", ".join(self._facts.names(writing[node]))
            self._note(
                BlindSpot(
                    kind="no_column_lineage",
                    entity=self._facts.name(node),
                    message=f"column lineage unknown: {jobs} may use the column",
                )
            )
        return reached_nodes

    def _path_to(self, job: int, reached: Mapping[int, ReachedNode]) -> tuple[str, ...] | None:
        paths = [reached[node].path for node in self._facts.inputs[job] if node in reached]
        return min(paths, key=lambda path: (len(path), path), default=None)

    def _jobs(self, reached: Mapping[int, ReachedNode]) -> dict[int, ReachedNode]:
        """Return the jobs that write what a column reaches, and jobs whose use of it is unknown."""
        facts = self._facts
        reached_nodes: dict[int, ReachedNode] = {}
        for dataset in reached:
            for job in facts.readers[dataset]:
                outputs = facts.outputs[job]
                writes = {node for node in outputs & set(reached) if (job, node) in facts.claimed}
                unknown = not outputs or any((job, node) not in facts.claimed for node in outputs)
                if writes or unknown:
                    path = self._path_to(job, reached)
                    certainty: Certainty = "column" if writes else "dataset"
                    reached_nodes[job] = ReachedNode(certainty, (*(path or ()), facts.name(job)))
        return reached_nodes

    def _reach_of_dataset(self, entity: Entity) -> dict[int, ReachedNode]:
        answer = self._trace(entity)
        reached: dict[int, ReachedNode] = {}
        for id_, path in _shortest_paths(answer).items():
            node = find_entity(id_, self._view.reader, self._identities)
            if node is not None:
                reached[self._identities.canonical(node.node)] = ReachedNode("dataset", path)
        return reached

    def _trace(self, entity: Entity) -> Trace:
        question = Question(Direction.DOWNSTREAM, None, FOREVER, _NODES, self._around.stale_days)
        answer = trace(self._view.graph, self._view.reader, entity, question)
        for spot in answer.blind_spots:
            self._note(spot)
        return answer

    def _note(self, spot: BlindSpot) -> None:
        self._spots[spot.kind, spot.entity, spot.message] = spot

    def known(self, nodes: Iterable[int]) -> dict[int, NodeFacts]:
        """Return the types and labels of nodes."""
        asked = list(nodes)
        missing = [node for node in asked if node not in self._known]
        spoken = self._identities.display_names(missing, self._view.reader)
        names = {node: spoken[node].id for node in missing}
        self.names.update(names)
        reader = NodeFactsReader(self._view.graph, self._view.reader)
        self._known.update(reader.read(names))
        return {node: self._known[node] for node in asked}

    def action(
        self, rule: TriggerRule, node: int, causes: list[TriggerCause], now: int
    ) -> TriggeredAction:
        """Return the action of a trigger on a target."""
        name = self.names[node]
        action = TriggeredAction(
            trigger=rule.name,
            target=str(name),
            target_name=name.name,
            target_type=self._known[node].type,
            action="",
            causes=sorted(causes, key=lambda cause: (cause.opened_at, cause.finding)),
            at=render_time(now),
            owners=self._around.owners(node),
        )
        action.action = rule.shown_for(action)[:_SHOWN]
        return action


def _cause(finding: Finding, reached: ReachedNode) -> TriggerCause:
    return TriggerCause(
        finding=finding.id,
        opened_at=finding.opened_at or finding.first_seen,
        kind=finding.kind,
        entity=finding.entity,
        subject=finding.subject,
        severity=finding.severity,
        message=finding.message,
        certainty=reached.certainty,
        path=list(reached.path),
    )


def _shortest_paths(answer: Trace) -> dict[str, tuple[str, ...]]:
    """Return the shortest path from the root of a trace to each other node."""
    leaving: dict[str, set[str]] = defaultdict(set)
    for edge in answer.edges:
        leaving[edge.source].add(edge.target)
    paths: dict[str, tuple[str, ...]] = {answer.root.id: (answer.root.id,)}
    waiting = deque(paths)
    while waiting:
        node = waiting.popleft()
        for target in sorted(leaving[node] - paths.keys()):
            paths[target] = (*paths[node], target)
            waiting.append(target)
    return {node: path for node, path in paths.items() if node != answer.root.id}
