"""Everything connected with a node, whatever the direction of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.vectors import Ints
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
    root_nodes = np.array([graph.identities.canonical(root)], np.int32)
    levels, seen = [root_nodes], root_nodes
    jobs = root_nodes
    if not from_job:
        jobs = _adjacent(graph, root_nodes, seen)
        levels.append(jobs)
        seen = np.concatenate(levels)
    for step in range(depth + 1):
        datasets = _adjacent(graph, jobs, seen)
        levels.append(datasets)
        jobs = _adjacent(graph, np.concatenate([jobs, datasets]), np.concatenate(levels))
        if step == depth or not len(jobs):
            break
        levels.append(jobs)
        seen = np.concatenate(levels)
    reached = np.concatenate(levels)
    shown = reached[:limit]
    further = _adjacent(graph, jobs, np.concatenate([reached, jobs])) if len(jobs) else jobs
    edges, sources, targets = _edges_among(graph, shown)
    omitted = len(reached) - len(shown) + len(jobs) + len(further)
    return Neighbourhood(shown, edges, sources, targets, omitted)


def _adjacent(graph: NodeGraph, nodes: Ints, seen: Ints) -> Ints:
    """Return the nodes at the other ends of edges, without those in `seen`, sorted."""
    names, _ = graph.identities.every_name(nodes)
    ends = graph.flow.ends
    leaving = _followed(graph, ends.leaving.of(names))
    entering = _followed(graph, ends.entering.of(names))
    far = np.concatenate([ends.target[leaving], ends.source[entering]])
    return np.setdiff1d(graph.identities.canonicals(far), seen).astype(np.int32)


def _edges_among(graph: NodeGraph, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    identities, ends = graph.identities, graph.flow.ends
    names, _ = identities.every_name(nodes)
    edges = _followed(graph, np.unique(ends.leaving.of(names)))
    sources = identities.canonicals(ends.source[edges])
    targets = identities.canonicals(ends.target[edges])
    inside = np.isin(targets, nodes)
    return edges[inside], sources[inside], targets[inside]


def _followed(graph: NodeGraph, edges: Ints) -> Ints:
    """Leave out edges between datasets that a job states: the job has edges of its own."""
    flow = graph.flow
    followed: Ints = edges[(flow.kind[edges] != EdgeKind.DERIVES) | (flow.via[edges] == 0)]
    return followed
