"""`GET /api/v1/lineage`: the graph around a dataset or a job.

An answer is joined from the JSON of its nodes. The snapshot caches the JSON of each node until an
event mentions the node or a neighbour. So an answer renders only nodes that changed since the last
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from starlette.responses import Response

from downriver.graph.index.rendered_nodes import RenderedNode
from downriver.graph.walk.neighbourhood import find_neighbourhood, find_neighbours
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.marquez.graph_facts import GraphFacts, RunFacts, node_of
from downriver.http.marquez.graph_nodes import GraphNodes
from downriver.http.marquez.records import LineageGraph
from downriver.http.request import context_of, query_number, query_text, run_read
from downriver.model.ids import JobId
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.graph import CatalogSnapshot, Entity
    from downriver.graph.walk.neighbourhood import Neighbourhood
    from downriver.service import Lineage

OMITTED = "Downriver-Omitted"  # a response header: how many nodes the answer omits
_DEFAULT_DEPTH = 20
_MOST_NODES = 10_000


class RenderedGraph(NamedTuple):
    """A `LineageGraph` as JSON, and how many nodes it omits."""

    json: bytes
    omitted: int


async def get_lineage(request: Request) -> Response:
    """Return the graph around `nodeId`, in the format of Marquez: `?nodeId=&depth=`."""
    node_id = query_text(request, "nodeId")
    depth = query_number(request, "depth", _DEFAULT_DEPTH, 10_000)
    lineage = context_of(request).lineage
    graph = await run_read(request, render_lineage, lineage, node_id, depth)
    headers = {OMITTED: str(graph.omitted)}
    return Response(graph.json, headers=headers, media_type="application/json")


def render_lineage(lineage: Lineage, node_id: str, depth: int | None) -> RenderedGraph:
    """Return what is connected with a dataset or job, at most `depth` jobs away."""
    with lineage.session.reading() as view:
        root = lineage.session.resolve(node_id, view)
        neighbourhood = find_neighbourhood(
            view.graph.nodes,
            root.node,
            _DEFAULT_DEPTH if depth is None else depth,
            _MOST_NODES,
            from_job=isinstance(root.id, JobId),
        )
        nodes = _nodes(view, neighbourhood.nodes.tolist(), root)
    return RenderedGraph(_join(nodes, neighbourhood), neighbourhood.omitted)


def _nodes(view: CatalogSnapshot, numbers: list[int], root: Entity) -> dict[int, RenderedNode]:
    """Return nodes as JSON. The root has the requested name, because clients search for its id."""
    renamed = _rename_root(view, root)
    state, kept = view.graph.state, view.graph.rendered
    rendered_nodes = kept.find((number for number in numbers if number not in renamed), state)
    missing = [number for number in numbers if number not in rendered_nodes]
    if missing:
        rendered = _render(view, missing, root)
        rendered_nodes |= rendered
        kept.add({n: node for n, node in rendered.items() if n not in renamed}, state)
    return rendered_nodes


def _rename_root(view: CatalogSnapshot, root: Entity) -> set[int]:
    """Return the nodes that contain the name of the root, if it is not its canonical name."""
    graph = view.graph.nodes
    number = graph.identities.canonical(root.node)
    usual = graph.identities.display_names([number], view.reader, as_sent=True)[number].id
    if usual == node_of(root):
        return set()
    return {number, *find_neighbours(graph, np.array([number], np.int32)).tolist()}


def _render(view: CatalogSnapshot, numbers: list[int], root: Entity) -> dict[int, RenderedNode]:
    facts = GraphFacts(view, np.array(numbers, np.int32), root)
    jobs = [number for number in numbers if isinstance(facts.names[number], JobId)]
    nodes = GraphNodes(facts, RunFacts(view, jobs))
    encode = msgspec.json.Encoder().encode
    rendered: dict[int, RenderedNode] = {}
    for number in numbers:
        node = facts.names[number]
        kind = b"JOB" if isinstance(node, JobId) else b"DATASET"
        id_json, data = encode(str(node)), encode(nodes.data(number))
        json = b'{"id":%b,"type":"%b","data":%b,"inEdges":[' % (id_json, kind, data)
        rendered[number] = RenderedNode(str(node), id_json, json)
    return rendered


def _join(nodes: dict[int, RenderedNode], neighbourhood: Neighbourhood) -> bytes:
    """Return the JSON of a `LineageGraph`: nodes and edges sorted by their ids."""
    order = sorted(nodes, key=lambda number: nodes[number].id)
    ordered = [nodes[number] for number in order]
    incoming, outgoing = _edges(ordered, order, neighbourhood)
    parts: list[bytes] = []
    for node, entering, leaving in zip(ordered, incoming, outgoing, strict=True):
        edges = (b",".join(entering), b'],"outEdges":[', b",".join(leaving))
        parts += (b"," if parts else b'{"graph":[', node.json, *edges, b"]}")
    omitted = b""
    if neighbourhood.omitted:
        omitted = b',"truncated":true,"omittedCount":%d' % neighbourhood.omitted
    return b"".join((*parts, b"]", omitted, b"}"))


def _edges(
    nodes: list[RenderedNode], numbers: list[int], neighbourhood: Neighbourhood
) -> tuple[list[list[bytes]], list[list[bytes]]]:
    """Return the edges that enter and those that leave each node as JSON, each once."""
    places = np.zeros(max(numbers) + 1, np.int64)
    places[numbers] = np.arange(len(numbers))
    pairs = np.unique(places[neighbourhood.sources] * len(numbers) + places[neighbourhood.targets])
    origins = [b'{"origin":' + node.id_json for node in nodes]
    destinations = [b',"destination":' + node.id_json + b"}" for node in nodes]
    incoming: list[list[bytes]] = [[] for _ in nodes]
    outgoing: list[list[bytes]] = [[] for _ in nodes]
    sources, targets = (pairs // len(numbers)).tolist(), (pairs % len(numbers)).tolist()
    for source, target in zip(sources, targets, strict=True):
        edge = origins[source] + destinations[target]
        outgoing[source].append(edge)
        incoming[target].append(edge)
    return incoming, outgoing


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/lineage",
        get_lineage,
        KeyRole.READER,
        answers(LineageGraph, *NAMED),
        query=("nodeId", "depth"),
        of_events=True,
    ),
)
