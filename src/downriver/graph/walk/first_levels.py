"""The first levels of a walk, node by node.

An array operation takes tens of microseconds for each level, however few nodes there are. Most
answers are small, so a walk starts node by node and continues with arrays when a level is wide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.vectors import NO_INTS, Ints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.graph.index.identities import Identities

_WIDE = 64
_LONG_ROW = 512


class FirstLevels(NamedTuple):
    """The nodes and edges reached so far. The walk continues at `frontier`, unless it is empty."""

    nodes: Ints
    depths: Ints
    edges: Ints
    near: Ints
    far: Ints
    jobs: Ints = NO_INTS
    frontier: Ints = NO_INTS
    level: int = 0


class EdgeLookup(NamedTuple):
    """The edges of the graph in one direction; those of `job_kind` lead to jobs.

    `stops` returns True for a node from which array code must continue the walk.
    """

    row: Callable[[int], Sequence[int]]
    far: memoryview
    kind: memoryview
    job_kind: int
    stops: Callable[[int], bool] = lambda node: False

    def of(self, node: int, identities: Identities | None) -> Sequence[int]:
        """Return the edges of a node under all its names."""
        if identities is None:
            return self.row(node)
        return [edge for name in identities.group(node) for edge in self.row(name)]


def start_at(roots: Ints) -> FirstLevels:
    """Return a walk that has only visited its roots."""
    depths = np.zeros(len(roots), np.int32)
    return FirstLevels(roots, depths, NO_INTS, NO_INTS, NO_INTS, frontier=roots)


def walk_first_levels(
    root: int, steps: EdgeLookup, identities: Identities | None, deepest: int
) -> FirstLevels:
    """Walk from `root`, across jobs, until a level is wide or deeper than `deepest`.

    A job has the level of the datasets that it leads to.
    """
    nodes, depths = [root], [0]
    edges: list[int] = []
    near: list[int] = []
    far: list[int] = []
    seen, jobs = {root}, {root}
    frontier, level = [root], 0
    while (
        frontier
        and level <= deepest
        and len(frontier) <= _WIDE
        and not any(map(steps.stops, frontier))
    ):
        opened = [(node, steps.of(node, identities)) for node in frontier]
        if sum(len(row) for _, row in opened) > _LONG_ROW:
            break
        level += 1
        frontier = []
        while opened:
            node, row = opened.pop()
            edges.extend(row)
            near.extend([node] * len(row))
            for edge in row:
                end = steps.far[edge]
                if identities is not None:
                    end = identities.canonical(end)
                far.append(end)
                is_job = steps.kind[edge] == steps.job_kind
                if end not in seen:
                    seen.add(end)
                    nodes.append(end)
                    depths.append(level)
                    if not is_job:
                        frontier.append(end)
                if is_job and end not in jobs:
                    jobs.add(end)
                    opened.append((end, steps.of(end, identities)))
    return FirstLevels(
        _array(nodes),
        _array(depths),
        _array(edges),
        _array(near),
        _array(far),
        jobs=_array(list(jobs)),
        frontier=_array(frontier),
        level=level,
    )


def _array(values: list[int]) -> Ints:
    return np.array(values, np.int32)
