"""A trace as a list: who feeds an entity and whom it feeds, with what was said of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.events.flows import PREFIX, FlowFacet, read_flows
from downriver.graph.entity_names import entity_id
from downriver.model.flows import EntityLineage, Related
from downriver.model.ids import ColumnId, DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph.identity import Identities
    from downriver.model.answers import Trace, TraceEdge, TraceNode
    from downriver.model.ids import EntityId
    from downriver.store import Reader


class _Words(msgspec.Struct):
    """What a job's facets say of it."""

    description: str = ""
    processingType: str = ""  # noqa: N815


class _Step(NamedTuple):
    """How data gets to an entity from the one before it."""

    flow_type: str
    transformation: str
    schedule: str | None
    job: str


def relate(
    answer: Trace,
    numbers: dict[str, int],
    direction: str,
    *,
    reader: Reader,
    identities: Identities,
    namespace: str,
) -> EntityLineage:
    """Return a trace as two lists of entities, nearest first; jobs between two are `via`."""
    told = _Told(answer, numbers, reader, identities)
    related = [
        told.related(node, namespace)
        for node in answer.nodes
        if node.id != answer.root.id and told.is_shown(node)
    ]
    root = answer.root
    return EntityLineage(
        entity_id=entity_id(identity_of(root), namespace),
        id=root.id,
        name=root.name if root.field is None else f"{root.name}.{root.field}",
        kind=root.kind,
        direction=direction,
        upstream=[entry for node, entry in related if node.depth < 0],
        downstream=[entry for node, entry in related if node.depth >= 0],
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


class _Told:
    """What was said of the nodes of a trace."""

    def __init__(
        self, answer: Trace, numbers: dict[str, int], reader: Reader, identities: Identities
    ) -> None:
        self._root = answer.root
        self._nodes = {node.id: node for node in answer.nodes}
        self._numbers = numbers
        self._reader = reader
        self._identities = identities
        self._into: dict[str, list[TraceEdge]] = {}
        self._out_of: dict[str, list[TraceEdge]] = {}
        for edge in answer.edges:
            self._into.setdefault(edge.target, []).append(edge)
            self._out_of.setdefault(edge.source, []).append(edge)
        self._flows = self._read_flows(answer.edges)
        self._jobs = self._read_jobs(answer)

    def is_shown(self, node: TraceNode) -> bool:
        """A job stands for itself only where data ends at it, or begins."""
        if node.kind != "job":
            return True
        beyond = self._into if node.depth < 0 else self._out_of
        return node.id not in beyond

    def related(self, node: TraceNode, namespace: str) -> tuple[TraceNode, Related]:
        """Return a node with how data gets to it, or from it."""
        upstream = node.depth < 0
        edges = (self._out_of if upstream else self._into).get(node.id, [])
        steps = [self._step(edge, upstream=upstream) for edge in edges]
        said = [step for step in steps if step.transformation] or steps
        return node, Related(
            entity_id=_short(node, namespace),
            id=node.id,
            name=node.name if node.field is None else f"{node.name}.{node.field}",
            kind=node.kind,
            depth=abs(node.depth),
            flow_type=said[0].flow_type if said else "",
            transformation="; ".join(dict.fromkeys(s.transformation for s in said))
            or (node.transformation or ""),
            schedule=next((step.schedule for step in steps if step.schedule), None),
            via=sorted({step.job for step in steps if step.job and step.job != node.id}),
            status="stale" if edges and all(e.status == "stale" for e in edges) else "active",
            confidence=edges[0].confidence if edges else "",
        )

    def _step(self, edge: TraceEdge, *, upstream: bool) -> _Step:
        job = edge.job or (edge.target if edge.kind == "reads" else edge.source)
        if edge.kind in ("reads", "writes"):
            words = self._jobs.get(job, _Words())
            return _Step(words.processingType.lower() or "job", words.description, None, job)
        if edge.type is not None:  # between columns
            return _Step(edge.subtype or edge.type, edge.description or "", None, edge.job or "")
        flow = self._flow(edge)
        return _Step(flow.flowType, flow.transformation, flow.schedule, edge.job or "")

    def _flow(self, edge: TraceEdge) -> FlowFacet:
        known = self._flows.get(edge.target, {})
        if edge.source in known:
            return known[edge.source]
        source = self._nodes.get(edge.source)
        names = source.aliases if source is not None else ()
        return next((known[name] for name in names if name in known), FlowFacet())

    def _read_flows(self, edges: Iterable[TraceEdge]) -> dict[str, dict[str, FlowFacet]]:
        """Return, by target and source, what was said of flows that no job carries."""
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
        found: dict[str, dict[str, FlowFacet]] = {}
        for number, facets in self._reader.facets_among(numbers, PREFIX).items():
            known = found.setdefault(numbers[number], {})
            known.update({flow.source: flow for flow in read_flows(facets)})
        return found

    def _read_jobs(self, answer: Trace) -> dict[str, _Words]:
        jobs = {self._numbers[n.id]: n.id for n in answer.nodes if n.kind == "job"}
        found = {name: _Words() for name in jobs.values()}
        for facet, field in (("documentation", "description"), ("jobType", "processingType")):
            for number, bodies in self._reader.facets_among(jobs, facet).items():
                words = _read_words(bodies[facet]) if facet in bodies else _Words()
                setattr(found[jobs[number]], field, getattr(words, field))
        return found


def _read_words(body: bytes) -> _Words:
    try:
        return msgspec.json.decode(body, type=_Words)
    except msgspec.DecodeError:
        return _Words()
