"""Paths from one node to another, shortest first."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.adjacency import EdgeRows
from downriver.graph.index.vectors import Ints

if TYPE_CHECKING:
    from downriver.graph.walk.result import WalkResult

_MOST_STEPS = 200_000
_UNREACHABLE = -1


class Routes(NamedTuple):
    """Simple paths, shortest first. `cut`: there may be more paths.

    `reached` are all nodes downstream of the start.
    """

    paths: list[list[int]]
    cut: bool
    reached: Ints


def find_routes(reach: WalkResult, end: int, limit: int) -> Routes:
    """Return up to `limit` simple paths from the root of a downstream walk to `end`.

    The distance to the end is known at every step, so the search never leaves the part of the
    graph that leads there and finds the shortest path without trying the others.
    """
    if end not in reach.nodes:
        return Routes([], False, reach.nodes)
    near, far = reach.places(reach.near), reach.places(reach.far)
    (goal,) = reach.places(np.array([end], np.int32)).tolist()
    distances = _distances(near, far, goal, len(reach.nodes))
    useful = (distances[near] != _UNREACHABLE) & (distances[far] != _UNREACHABLE)
    onward: dict[int, set[int]] = defaultdict(set)
    for source, target in zip(near[useful].tolist(), far[useful].tolist(), strict=True):
        onward[source].add(target)
    paths, cut = _search(onward, distances.tolist(), goal, limit)
    return Routes([reach.nodes[path].tolist() for path in paths], cut, reach.nodes)


def _distances(near: Ints, far: Ints, goal: int, size: int) -> Ints:
    """Return the distance of each node to the goal."""
    back = EdgeRows.of_ends(far)
    distances = np.full(size, _UNREACHABLE, np.int32)
    frontier, distance = np.array([goal], np.int32), 0
    while len(frontier):
        distances[frontier] = distance
        before = near[back.of(frontier)]
        frontier = np.unique(before[distances[before] == _UNREACHABLE])
        distance += 1
    return distances


def _search(
    onward: dict[int, set[int]], distances: list[int], goal: int, limit: int
) -> tuple[list[list[int]], bool]:
    """Extend the path with the smallest possible length; among several, the longest one so far."""
    paths: list[list[int]] = []
    waiting: list[tuple[int, int, list[int]]] = [(0, 0, [0])]
    steps = 0
    while waiting:
        _, _, path = heappop(waiting)
        if path[-1] == goal and len(path) > 1:
            if len(paths) == limit:
                return paths, True
            paths.append(path)
            continue
        for node in sorted(onward[path[-1]]):
            if node not in path or (node == goal and goal == path[0]):
                steps += 1
                heappush(waiting, (len(path) + distances[node], -len(path), [*path, node]))
        if steps > _MOST_STEPS:
            return paths, True
    return paths, False
