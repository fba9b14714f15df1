"""The nodes connected with a node, in any direction of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.vectors import Flags, Ints
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from downriver.graph.index.node_graph import NodeGraph


class Neighbourhood(NamedTuple):
    """Nodes around a root, the nearest first, and every edge between two of them."""

    nodes: Ints  # canonical ids
    edges: Ints  # numbers of edges of the graph
    sources: Ints  # canonical ids of the ends of each edge
    targets: Ints
    omitted: int  # nodes beyond the limit, and those one step beyond the depth


def find_neighbourhood(
    graph: NodeGraph, root: int, depth: int, limit: int, *, from_job: bool
) -> Neighbourhood:
    """Return the nodes around `root` in at most `depth` steps from job to job.

    A step goes from a job to the jobs that read or write one of its datasets. The walk starts at
    `root` if that is a job, else at each job that reads or writes it. A job comes with all its
    datasets. A dataset that derives from another one without a job is a step further.
    """
    seen = np.zeros(max(graph.size, root + 1), np.bool_)  # a root without edges may be past it
    root_nodes = np.array([graph.identities.canonical(root)], np.int32)
    seen[root_nodes] = True
    levels, jobs = [root_nodes], root_nodes
    if not from_job:
        jobs = _unseen_neighbours(graph, root_nodes, seen)
        levels.append(jobs)
    for step in range(depth + 1):
        datasets = _unseen_neighbours(graph, jobs, seen)
        levels.append(datasets)
        jobs = _unseen_neighbours(graph, datasets, seen)
        if step == depth or not len(jobs):
            break
        levels.append(jobs)
    reached = np.concatenate(levels)
    shown = reached[:limit]
    further = _unseen_neighbours(graph, jobs, seen)
    edges, sources, targets = _edges_among(graph, shown)
    omitted = len(reached) - len(shown) + len(jobs) + len(further)
    return Neighbourhood(shown, edges, sources, targets, omitted)


def find_neighbours(graph: NodeGraph, nodes: Ints) -> Ints:
    """Return the nodes at the other ends of the edges of nodes. A node may occur repeatedly."""
    names, _ = graph.identities.every_name(nodes)
    ends = graph.flow.ends
    leaving = _followed(graph, ends.leaving.of(names))
    entering = _followed(graph, ends.entering.of(names))
    far = np.concatenate([ends.target[leaving], ends.source[entering]])
    return graph.identities.canonicals(far)


def _unseen_neighbours(graph: NodeGraph, nodes: Ints, seen: Flags) -> Ints:
    """Return the neighbours of nodes that are not marked in `seen`, sorted, and mark them."""
    far = find_neighbours(graph, nodes)
    unseen: Ints = np.unique(far[~seen[far]])
    seen[unseen] = True
    return unseen


def _edges_among(graph: NodeGraph, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    identities, ends = graph.identities, graph.flow.ends
    names, _ = identities.every_name(nodes)
    edges = _followed(graph, np.unique(ends.leaving.of(names)))
    sources = identities.canonicals(ends.source[edges])
    targets = identities.canonicals(ends.target[edges])
    inside = np.isin(targets, nodes)
    return edges[inside], sources[inside], targets[inside]


def _followed(graph: NodeGraph, edges: Ints) -> Ints:
    """Leave out edges between datasets that a job states: the edges of the job replace them."""
    flow = graph.flow
    followed: Ints = edges[(flow.kind[edges] != EdgeKind.DERIVES) | (flow.via[edges] == 0)]
    return followed
