"""Traces and paths: nodes, edges with their evidence, and blind spots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.graph.answers.column_view import ColumnView
from downriver.graph.answers.node_view import NodeView
from downriver.graph.answers.unread_jobs import unread_job_spots
from downriver.graph.answers.view import GraphView, Question, WalkedEdges, limit_blind_spots
from downriver.graph.index.edges import FOREVER
from downriver.model.answers import BlindSpot, Direction, Paths, Trace, is_complete
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from downriver.graph.index.vectors import Flags, Ints
    from downriver.graph.names.resolution import Entity
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.graph.walk.result import WalkResult
    from downriver.model.answers import TraceEdge
    from downriver.store import CatalogReader


def trace(index: GraphSnapshot, reader: CatalogReader, entity: Entity, question: Question) -> Trace:
    """Return the trace of an entity."""
    return trace_numbered(index, reader, entity, question)[0]


def trace_numbered(
    index: GraphSnapshot, reader: CatalogReader, entity: Entity, question: Question
) -> tuple[Trace, dict[str, int]]:
    """Return the trace of an entity, and the store's number of each node."""
    view = _view(index, reader, entity, question)
    sides = _WalkedSides({down: view.reach(downstream=down) for down in _SIDES[question.direction]})
    shown = sides.nearest(question.limit)
    hidden = set() if question.readers else view.readers(sides.steps(shown)) - {view.root}
    for job in hidden:
        del shown[job]
    nodes = view.nodes(view.join_statements(shown))
    edges = view.edges(sides.steps(shown), nodes)
    blind_spots = [
        *_not_seen_yet(index, reader, entity, question),
        *_limits(sides, question, nodes[view.root].id),
        *_stale(edges),
        *(
            spot
            for down, reached in sides.sides(shown)
            for spot in view.blind_spots(reached, downstream=down)
        ),
        *unread_job_spots(
            index,
            reader,
            view.datasets_and_jobs(shown),
            entity=nodes[view.root].id,
            as_of=question.as_of,
        ),
    ]
    answer = Trace(
        root=nodes[view.root],
        nodes=sorted(nodes.values(), key=lambda node: (abs(node.depth), node.depth, node.id)),
        edges=edges,
        complete=is_complete(blind_spots),
        blind_spots=blind_spots,
        omitted_count=sides.within + sides.beyond - len(shown) - len(hidden),
        reader_count=len(hidden),
    )
    return answer, {node.id: number for number, node in nodes.items()}


def count_reached(
    index: GraphSnapshot, reader: CatalogReader, entity: Entity, question: Question
) -> int:
    """Count the nodes in the directions of the question, at any depth, including the root."""
    view = _view(index, reader, entity, question._replace(depth=None))
    return _WalkedSides(
        {down: view.reach(downstream=down) for down in _SIDES[question.direction]}
    ).within


def paths(
    index: GraphSnapshot, reader: CatalogReader, source: Entity, target: Entity, question: Question
) -> Paths:
    """Return the paths of data from one entity to another, shortest first."""
    view = _view(index, reader, source, question)
    end = _view(index, reader, target, question).root
    routes = view.routes(end, question.limit)
    passed = {view.root, end, *(node for path in routes.paths for node in path)}
    nodes = view.nodes(dict.fromkeys(passed, 0))
    blind_spots = [
        *view.blind_spots(routes.reached, downstream=True),
        *unread_job_spots(
            index,
            reader,
            view.datasets_and_jobs(passed),
            entity=nodes[view.root].id,
            as_of=question.as_of,
        ),
    ]
    if routes.cut:
        message = f"there may be more than the {len(routes.paths)} paths shown"
        blind_spots.append(BlindSpot(kind="path_limit", entity=nodes[end].id, message=message))
    return Paths(
        source=nodes[view.root],
        target=nodes[end],
        paths=[[nodes[node].id for node in path] for path in routes.paths],
        complete=is_complete(blind_spots),
        blind_spots=blind_spots,
    )


def _view(
    index: GraphSnapshot, reader: CatalogReader, entity: Entity, question: Question
) -> GraphView:
    if entity.column is None:
        return NodeView(index, reader, entity.node, question)
    return ColumnView(index, reader, entity.column, question)


# The sides to walk: True is downstream. It comes first, so that a node on both sides is shown
# there.
_SIDES = {
    Direction.UPSTREAM: (False,),
    Direction.DOWNSTREAM: (True,),
    Direction.BOTH: (True, False),
}


class _WalkedSides:
    """The nodes of one or two walks, each once."""

    def __init__(self, reaches: dict[bool, WalkResult]) -> None:
        self._reaches = reaches
        nodes = np.concatenate([reach.nodes for reach in reaches.values()])
        depths = [reach.depths * (1 if down else -1) for down, reach in reaches.items()]
        first = slice(None) if len(reaches) == 1 else np.unique(nodes, return_index=True)[1]
        self._nodes, self._depths = nodes[first], np.concatenate(depths)[first]
        self.within = len(self._nodes)
        self.beyond = _count_beyond(list(reaches.values()))

    def nearest(self, limit: int) -> dict[int, int]:
        """Return the nodes to show, with their depths."""
        order = np.argsort(np.abs(self._depths), kind="stable")[:limit]
        return dict(zip(self._nodes[order].tolist(), self._depths[order].tolist(), strict=True))

    def steps(self, shown: Collection[int]) -> WalkedEdges:
        """Return the edges between nodes that are shown."""
        reaches = self._reaches.items()
        source = np.concatenate([r.near if down else r.far for down, r in reaches])
        target = np.concatenate([r.far if down else r.near for down, r in reaches])
        edges = np.concatenate([reach.edges for _, reach in reaches])
        between = self._are_shown(source, shown) & self._are_shown(target, shown)
        return WalkedEdges(edges[between], source[between], target[between])

    def sides(self, shown: Collection[int]) -> Iterator[tuple[bool, Ints]]:
        """Yield for each side whether it is downstream, and its nodes that are shown."""
        for down, reach in self._reaches.items():
            yield down, reach.nodes[self._are_shown(reach.nodes, shown)]

    def _are_shown(self, nodes: Ints, shown: Collection[int]) -> Flags:
        if len(shown) == self.within:
            return np.ones(len(nodes), np.bool_)
        return np.isin(nodes, np.fromiter(shown, np.int32, len(shown)))


def _count_beyond(reaches: list[WalkResult]) -> int:
    """Count the nodes just past the depth limit, without those that the other side shows."""
    if len(reaches) == 1:
        return len(reaches[0].beyond)
    beyond = np.concatenate([reach.beyond for reach in reaches])
    if not len(beyond):
        return 0
    nodes = np.concatenate([reach.nodes for reach in reaches])
    return len(np.setdiff1d(beyond, nodes))


def _not_seen_yet(
    index: GraphSnapshot, reader: CatalogReader, entity: Entity, question: Question
) -> Iterator[BlindSpot]:
    if question.as_of == FOREVER:
        return
    names = index.nodes.identities.group(entity.node)
    first_at = min(reader.nodes.span(name).first.at for name in names)
    if first_at > question.as_of:
        message = f"first seen {render_time(first_at)}; nothing is known about earlier times"
        yield BlindSpot(kind="not_seen_yet", entity=str(entity.id), message=message)


def _limits(sides: _WalkedSides, question: Question, root: str) -> Iterator[BlindSpot]:
    if sides.beyond:
        message = (
            f"{sides.beyond} more nodes are one step beyond depth {question.depth}; "
            "increase the depth"
        )
        yield BlindSpot(kind="depth_limit", entity=root, message=message)
    if sides.within > question.limit:
        more = sides.within - question.limit
        message = f"{more} more nodes were found than the {question.limit} shown; "
        yield BlindSpot(
            kind="node_limit",
            entity=root,
            message=message + "increase the limit or start at a nearer entity",
        )


def _stale(edges: list[TraceEdge]) -> list[BlindSpot]:
    spots = [
        BlindSpot(
            kind="stale_edge",
            entity=edge.source,
            message=f"-> {edge.target} was last seen {edge.last_seen}; "
            "the job has run since without it",
        )
        for edge in edges
        if edge.status == "stale"
    ]
    return limit_blind_spots(spots, len(spots))
