"""A set of nodes with the edges between them, as a trace without a direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.graph.answers.node_view import NodeView
from downriver.graph.answers.view import WalkedEdges
from downriver.graph.index.edges import FOREVER
from downriver.model.answers import BlindSpot, Trace, is_complete
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from downriver.graph.answers.view import Question
    from downriver.graph.index.node_graph import NodeGraph
    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.store import CatalogReader


def trace_subgraph(
    index: GraphSnapshot, reader: CatalogReader, nodes: Ints, question: Question
) -> tuple[Trace, dict[str, int]]:
    """Return canonical nodes with the edges between them, and the store's number of each.

    A job is added where it moves data from one of the datasets to another. The root is the first
    of the nodes, which must not be empty.
    """
    graph = index.nodes
    every = np.union1d(nodes, connecting_jobs(graph, nodes, question.as_of)).astype(np.int32)
    # The nodes of the question come before the jobs that connect them.
    shown = np.concatenate([nodes, np.setdiff1d(every, nodes)])[: question.limit].astype(np.int32)
    view = NodeView(index, reader, int(shown[0]), question)
    rendered = view.nodes(view.join_statements(dict.fromkeys(shown.tolist(), 0)))
    edges = view.edges(_edges_among(graph, shown, question.as_of), rendered)
    spots = view.blind_spots(shown, downstream=True)
    if len(every) > len(shown):
        message = f"{len(every) - len(shown)} more nodes are selected than the {len(shown)} shown"
        root = rendered[view.root].id
        spots.append(BlindSpot(kind="node_limit", entity=root, message=message))
    answer = Trace(
        root=rendered[view.root],
        nodes=sorted(rendered.values(), key=lambda node: node.id),
        edges=sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind)),
        complete=is_complete(spots),
        blind_spots=spots,
        omitted_count=len(every) - len(shown),
    )
    return answer, {node.id: number for number, node in rendered.items()}


def connecting_jobs(graph: NodeGraph, nodes: Ints, as_of: int = FOREVER) -> Ints:
    """Return the jobs that read one of the datasets and write another of them, or the same."""
    flow = graph.flow
    names, _ = graph.identities.every_name(nodes)
    reads = _at(graph, flow.ends.leaving.of(names), EdgeKind.READS, as_of)
    writes = _at(graph, flow.ends.entering.of(names), EdgeKind.WRITES, as_of)
    jobs: Ints = np.intersect1d(flow.ends.target[reads], flow.ends.source[writes])
    return jobs.astype(np.int32)


def _at(graph: NodeGraph, edges: Ints, kind: EdgeKind, as_of: int) -> Ints:
    is_kind = graph.flow.kind[edges] == kind
    if as_of != FOREVER:
        is_kind &= graph.flow.first_at.of(edges) <= as_of
    chosen: Ints = edges[is_kind]
    return chosen


def _edges_among(graph: NodeGraph, nodes: Ints, as_of: int) -> WalkedEdges:
    flow, identities = graph.flow, graph.identities
    names, _ = identities.every_name(nodes)
    edges = np.unique(flow.ends.leaving.of(names))
    if as_of != FOREVER:
        edges = edges[flow.first_at.of(edges) <= as_of]
    source = identities.canonicals(flow.ends.source[edges])
    target = identities.canonicals(flow.ends.target[edges])
    inside = np.isin(target, nodes)
    return WalkedEdges(edges[inside], source[inside], target[inside])
