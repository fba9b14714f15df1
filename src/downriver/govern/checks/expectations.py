"""Edges that must exist, and edges that must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import AmbiguousNameError, EntityNotFoundError
from downriver.graph import Entity, Question, trace
from downriver.model.answers import Direction
from downriver.model.ids import ColumnId, DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.govern.checks.config import ExpectedEdge
    from downriver.graph import CatalogSnapshot
    from downriver.model.answers import BlindSpot, Trace

MEANING = "An expected edge is missing, or an edge exists that must not."
_WALKED = 100_000


class EdgeOutcome(NamedTuple):
    """The reason why an expectation fails, None if it holds, and the blind spots."""

    entity: str
    related: list[str]
    failure: str | None
    blind_spots: list[BlindSpot]


def check_expected_edge(
    edge: ExpectedEdge,
    view: CatalogSnapshot,
    resolve: Callable[[str], Entity],
    *,
    must_exist: bool,
) -> EdgeOutcome:
    """Follow the lineage from one entity, and return whether the expectation holds.

    An unknown name fails every expectation. Only complete lineage proves that an edge does not
    exist.
    """
    try:
        source, target = resolve(edge.source), resolve(edge.target)
    except (EntityNotFoundError, AmbiguousNameError) as exc:
        return EdgeOutcome(edge.target, [], exc.message, [])
    names = view.graph.nodes.identities.display_names([source.node, target.node], view.reader)
    begin, end = str(_id(source, names[source.node].id)), str(_id(target, names[target.node].id))
    question = Question(Direction.DOWNSTREAM, 1 if edge.direct else None, limit=_WALKED)
    answer = trace(view.graph, view.reader, source, question)
    exists = _contains(answer, end, target)
    words = "edge" if edge.direct else "path"
    if must_exist:
        failure = None if exists else f"no {words} from {begin} to {end}"
        return EdgeOutcome(end, [begin], failure, [] if exists else answer.blind_spots)
    if exists:
        return EdgeOutcome(end, [begin], f"a {words} from {begin} to {end} exists", [])
    spots = _hiding_spots(answer, view, target)
    failure = f"lineage of {begin} is incomplete: a {words} to {end} may exist" if spots else None
    return EdgeOutcome(end, [begin], failure, spots)


def _hiding_spots(answer: Trace, view: CatalogSnapshot, target: Entity) -> list[BlindSpot]:
    """Return the blind spots of an entity and its upstream, which may hide a path to it.

    A depth limit is no blind spot here, because `direct` sets it.
    """
    whole = target.id.dataset if isinstance(target.id, ColumnId) else target.id
    question = Question(Direction.UPSTREAM, limit=_WALKED)
    upstream = trace(view.graph, view.reader, Entity(whole, target.node), question)
    nodes = {node.id for node in upstream.nodes}
    hiding = [
        spot
        for spot in answer.blind_spots
        if spot.kind != "depth_limit"
        and (spot.entity in nodes or not spot.entity.startswith(("job:", "dataset:")))
    ]
    return [*hiding, *upstream.blind_spots]


def _id(entity: Entity, node_id: object) -> object:
    if isinstance(entity.id, ColumnId) and isinstance(node_id, DatasetId):
        return ColumnId(node_id, entity.id.field)
    return node_id


def _contains(answer: Trace, end: str, target: Entity) -> bool:
    """Return whether a trace contains an entity.

    A trace of columns contains the datasets of its columns.
    """
    if any(node.id == end and node.id != answer.root.id for node in answer.nodes):
        return True
    if isinstance(target.id, ColumnId):
        return False
    return any(
        node.field is not None and str(DatasetId(node.namespace, node.name)) == end
        for node in answer.nodes
        if node.id != answer.root.id
    )
