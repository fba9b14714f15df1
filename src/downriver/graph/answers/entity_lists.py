"""A trace as lists of upstream and downstream entities, and the source columns of a column."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from downriver.graph.names.entity_ids import entity_id
from downriver.model.flows import ColumnDerivation, EntityLineage, Related
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.openlineage.facets.custom import FLOW_PREFIX, FlowFacet, parse_flow
from downriver.openlineage.facets.description import DOCUMENTATION, parse_description
from downriver.openlineage.facets.job import JOB_TYPE, parse_job_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from downriver.graph.index.identities import Identities
    from downriver.model.answers import Trace, TraceEdge, TraceNode
    from downriver.model.ids import EntityId
    from downriver.store import CatalogReader


class _JobFacts(NamedTuple):
    """The facts in a job's facets."""

    description: str = ""
    processing: str = ""


class _Step(NamedTuple):
    """How data flows to an entity from the previous one, and the jobs that move it."""

    flow_type: str
    transformation: str
    schedule: str | None
    jobs: tuple[str, ...]


def relate(
    answer: Trace,
    numbers: dict[str, int],
    direction: str,
    *,
    reader: CatalogReader,
    identities: Identities,
    namespace: str,
) -> EntityLineage:
    """Return a trace as two lists of entities, nearest first; jobs between two are `via`."""
    facts = _StepFacts(answer, numbers, reader, identities)
    root = answer.root
    shown = [node for node in answer.nodes if node.id != root.id and facts.is_shown(node)]
    return EntityLineage(
        entity_id=entity_id(identity_of(root), namespace),
        id=root.id,
        name=root.name if root.field is None else f"{root.name}.{root.field}",
        kind=root.kind,
        direction=direction,
        upstream=[facts.related(node, namespace) for node in shown if node.depth < 0],
        downstream=[facts.related(node, namespace) for node in shown if node.depth >= 0],
        omitted_count=answer.omitted_count,
        complete=answer.complete,
        blind_spots=answer.blind_spots,
    )


def _short(node: TraceNode, namespace: str) -> str:
    if node.kind == "dataset" and node.namespace == namespace:  # most of them
        return f"table:{node.name}"
    return entity_id(identity_of(node), namespace)


def identity_of(node: TraceNode) -> EntityId:
    """Return the identity that a node of an answer shows."""
    if node.kind == "job":
        return JobId(node.namespace, node.name)
    dataset = DatasetId(node.namespace, node.name)
    return dataset if node.field is None else ColumnId(dataset, node.field)


class _StepFacts:
    """Facts about the nodes and edges of a trace."""

    def __init__(
        self, answer: Trace, numbers: dict[str, int], reader: CatalogReader, identities: Identities
    ) -> None:
        self._answer = answer
        self._numbers = numbers
        self._reader = reader
        self._identities = identities
        self._flows = self._read_flows(answer.edges)
        self._jobs = self._read_jobs(answer)

    @cached_property
    def _nodes(self) -> dict[str, TraceNode]:
        return {node.id: node for node in self._answer.nodes}

    @cached_property
    def _into(self) -> dict[str, list[TraceEdge]]:
        return _grouped(self._answer.edges, attrgetter("target"))

    @cached_property
    def _out_of(self) -> dict[str, list[TraceEdge]]:
        return _grouped(self._answer.edges, attrgetter("source"))

    def is_shown(self, node: TraceNode) -> bool:
        """Return whether to list a node. A job is listed only if data starts or ends at it."""
        if node.kind != "job":
            return True
        beyond = self._into if node.depth < 0 else self._out_of
        return node.id not in beyond

    def related(self, node: TraceNode, namespace: str) -> Related:
        """Return a node with the steps by which data flows to it or from it."""
        edges = (self._out_of if node.depth < 0 else self._into).get(node.id, [])
        way = _together([self._step(edge) for edge in edges])
        return Related(
            entity_id=_short(node, namespace),
            id=node.id,
            name=node.name if node.field is None else f"{node.name}.{node.field}",
            kind=node.kind,
            depth=abs(node.depth),
            flow_type=way.flow_type,
            transformation=way.transformation or node.transformation or "",
            schedule=way.schedule or None,
            via=[job for job in way.jobs if job != node.id],
            status=_status(edges),
            confidence=edges[0].confidence if edges else "",
            parents=self._parents(node, edges),
        )

    def _parents(self, node: TraceNode, edges: list[TraceEdge]) -> list[str]:
        """Return the neighbours towards the root. Entities replace the jobs that connect them."""
        end = "target" if node.depth < 0 else "source"
        steps = self._out_of if node.depth < 0 else self._into
        parents: dict[str, None] = {}
        for edge in edges:
            near = getattr(edge, end)
            if edge.kind == "writes" if node.depth >= 0 else edge.kind == "reads":
                parents.update(dict.fromkeys(getattr(step, end) for step in steps.get(near, ())))
            else:
                parents[near] = None
        return [parent for parent in parents if parent != node.id]

    def _step(self, edge: TraceEdge) -> _Step:
        if edge.kind in ("reads", "writes"):
            job = edge.target if edge.kind == "reads" else edge.source
            words = self._jobs.get(job, _JobFacts())
            return _Step(words.processing or "job", words.description, None, (job,))
        jobs = () if edge.job is None else (edge.job,)
        if edge.type is not None:  # between columns
            return _Step(edge.subtype or edge.type, edge.description or "", None, jobs)
        flow = self._flow(edge)
        return _Step(flow.flowType, flow.transformation, flow.schedule, jobs)

    def _flow(self, edge: TraceEdge) -> FlowFacet:
        known = self._flows.get((edge.source, edge.target))
        if known is not None:
            return known
        source = self._nodes.get(edge.source)
        names = source.aliases if source is not None else ()
        flows = (self._flows.get((name, edge.target)) for name in names)
        return next((flow for flow in flows if flow is not None), FlowFacet())

    def _read_flows(self, edges: Iterable[TraceEdge]) -> dict[tuple[str, str], FlowFacet]:
        """Return the facts of flows without a job, by source and target."""
        targets = {e.target for e in edges if e.kind == "derives" and e.type is None}
        numbers = {
            number: target
            for target in targets
            for number in (
                self._identities.group(self._numbers[target])
                if self._identities
                else (self._numbers[target],)
            )
        }
        flows: dict[tuple[str, str], FlowFacet] = {}
        for number, facets in self._reader.facets.starting_with(numbers, FLOW_PREFIX).items():
            for flow in map(parse_flow, facets.values()):
                flows[flow.source, numbers[number]] = flow
        return flows

    def _read_jobs(self, answer: Trace) -> dict[str, _JobFacts]:
        jobs = {self._numbers[n.id]: n.id for n in answer.nodes if n.kind == "job"}
        bodies = self._reader.facets.of_each(jobs, (DOCUMENTATION, JOB_TYPE))
        return {
            jobs[number]: _JobFacts(
                parse_description(facets.get(DOCUMENTATION)),
                parse_job_type(facets.get(JOB_TYPE)).processingType.lower(),
            )
            for number, facets in bodies.items()
        }


def _grouped(edges: list[TraceEdge], end: Callable[[TraceEdge], str]) -> dict[str, list[TraceEdge]]:
    grouped: dict[str, list[TraceEdge]] = {}
    for edge in edges:
        grouped.setdefault(end(edge), []).append(edge)
    return grouped


def _together(steps: list[_Step]) -> _Step:
    """Return one step that combines several steps to the same entity."""
    if len(steps) == 1:  # the usual case
        return steps[0]
    described = [step for step in steps if step.transformation] or steps
    return _Step(
        described[0].flow_type if described else "",
        "; ".join(dict.fromkeys(step.transformation for step in described)),
        next((step.schedule for step in steps if step.schedule), None),
        tuple(sorted({job for step in steps for job in step.jobs})),
    )


def _status(edges: list[TraceEdge]) -> str:
    """Return `stale` if every edge is stale."""
    if not edges or edges[0].status == "active":
        return "active"
    return "active" if any(edge.status == "active" for edge in edges) else "stale"


def list_derivations(answer: Trace) -> list[ColumnDerivation]:
    """Return the derivations of the root of a trace: one entry for each job, ordered by name."""
    names = {node.id: f"{node.name}.{node.field}" for node in answer.nodes}
    by_job: defaultdict[str | None, list[TraceEdge]] = defaultdict(list)
    for edge in answer.edges:
        if edge.target == answer.root.id:
            by_job[edge.job].append(edge)
    return [
        _derivation(names[answer.root.id], job, edges, names)
        for job, edges in sorted(by_job.items(), key=lambda item: item[0] or "")
    ]


def _derivation(
    column: str, job: str | None, edges: list[TraceEdge], names: dict[str, str]
) -> ColumnDerivation:
    direct = [edge for edge in edges if edge.type != "INDIRECT"]
    indirect = [edge for edge in edges if edge.type == "INDIRECT"]
    descriptions = [edge.description for edge in direct if edge.description]
    kinds = [edge.subtype for edge in direct or indirect if edge.subtype]
    return ColumnDerivation(
        output_column=column,
        input_columns=list(dict.fromkeys(names[edge.source] for edge in direct)),
        indirect_columns=list(dict.fromkeys(names[edge.source] for edge in indirect)),
        transformation="; ".join(dict.fromkeys(descriptions or kinds)),
        job=job,
        status="stale" if all(edge.status == "stale" for edge in edges) else "active",
        confidence=edges[0].confidence,
    )
