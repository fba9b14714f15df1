"""The walks of `first_levels`, compiled with numba.

Compiled code visits a node in nanoseconds, Python in a microsecond. Past some thousand nodes the
walk is limited by memory latency, and array operations are faster again. Loading this module takes
a quarter of a second, and the first compilation on a machine some seconds, so it is imported by
`compilation.load` alone. If a step is more than following an edge, the compiled walk stops and
array code continues.
"""

from __future__ import annotations

import numba
import numpy as np

from downriver.graph.index.adjacency import RowArrays
from downriver.graph.index.vectors import Flags, Ints
from downriver.graph.walk.result import Bytes

_FIRST = 128  # initial size of an array
MANY = 8192  # nodes; array code continues from here

# Nodes and their depths; edges and their near and far ends; the index of the first node that is not
# expanded yet, and its depth.
Found = tuple[Ints, Ints, Ints, Ints, Ints, int, int]


@numba.njit(cache=True, nogil=True)
def _empty() -> Ints:
    return np.empty(_FIRST, np.int32)


@numba.njit(cache=True, nogil=True)
def _room(array: Ints, size: int) -> Ints:
    """Return an array with room for `size`."""
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), np.int32)
    larger[: len(array)] = array
    return larger


@numba.njit(cache=True, nogil=True)
def _edges_of(node: int, rows: RowArrays, into: Ints, count: int) -> tuple[Ints, int]:
    """Append a node's edges to the first `count` of `into`."""
    if node < len(rows.starts) - 1:
        start, end = rows.starts[node], rows.starts[node + 1]
        into = _room(into, count + end - start)
        for at in range(start, end):
            into[count] = rows.edges[at]
            count += 1
    new = rows.first_new[node] if node < len(rows.first_new) else np.int32(0)
    while 0 < new <= rows.new_count:
        into = _room(into, count + 1)
        into[count] = len(rows.edges) + new - 1
        count += 1
        new = rows.next_new[new]
    return into, count


@numba.njit(cache=True, nogil=True)
def _has(flags: Flags | Ints, at: int) -> bool:
    return at < len(flags) and flags[at] != 0


@numba.njit(cache=True, nogil=True)
def walk_nodes(
    root: int,
    rows: RowArrays,
    far_ends: Ints,
    kinds: Bytes,
    job_kind: int,
    smallest: Ints,
    ring: Ints,
    reached: tuple[Bytes, int],
    opened: tuple[Bytes, int],
    enough: int,
    deepest: int,
) -> Found:
    """Walk from `root`, across jobs, until there are `enough` nodes or one deeper than `deepest`.

    `smallest` and `ring` describe nodes with several names, as in `Identities`. `reached` and
    `opened` have an entry for every node, in which this walk writes its number.
    """
    nodes, depths = _empty(), _empty()
    edges, near, far = _empty(), _empty(), _empty()
    nodes[0], depths[0], node_count, edge_count = root, 0, 1, 0
    marks, number = reached
    job_marks, job_number = opened
    marks[root], job_marks[root] = number, job_number
    jobs = _empty()
    at, job_count, level, many = 0, 0, 0, False
    # Nodes are expanded in the order in which they were reached. A job is expanded before the next
    # dataset and has the depth of the datasets that it leads to, so depths never decrease.
    while job_count or (at < node_count and not many):
        if job_count:
            job_count -= 1
            node = jobs[job_count]
        else:
            node = nodes[at]
            if depths[at] > deepest or (depths[at] == level and node_count > enough):
                many = True
                continue
            level = depths[at] + 1
            at += 1
            if job_marks[node] == job_number and node != root:
                continue  # a job
        first = edge_count
        edges, edge_count = _edges_of(node, rows, edges, edge_count)
        if node < len(ring):
            other = ring[node]
            while other > 0 and other != node:
                edges, edge_count = _edges_of(other, rows, edges, edge_count)
                other = ring[other]
        near, far = _room(near, edge_count), _room(far, edge_count)
        for place in range(first, edge_count):
            end = far_ends[edges[place]]
            if end < len(smallest) and smallest[end]:
                end = smallest[end]
            near[place], far[place] = node, end
            if marks[end] != number:
                marks[end] = number
                nodes, depths = _room(nodes, node_count + 1), _room(depths, node_count + 1)
                nodes[node_count], depths[node_count] = end, level
                node_count += 1
            if kinds[edges[place]] == job_kind and job_marks[end] != job_number:
                job_marks[end] = job_number
                jobs = _room(jobs, job_count + 1)
                jobs[job_count] = end
                job_count += 1
    return (
        nodes[:node_count],
        depths[:node_count],
        edges[:edge_count],
        near[:edge_count],
        far[:edge_count],
        at,
        level,
    )


@numba.njit(cache=True, nogil=True)
def walk_columns(
    root: int,
    rows: RowArrays,
    far_ends: Ints,
    datasets: Ints,
    starred: Flags,
    smallest: Ints,
    reached: tuple[Bytes, int],
    enough: int,
    deepest: int,
) -> Found:
    """Walk from `root` until there are `enough` columns or one deeper than `deepest`.

    It also stops before a level with a column of a dataset that has a `*` (`starred`), or
    with an edge to a dataset of several names (`smallest`).
    """
    nodes, depths = _empty(), _empty()
    edges, near, far = _empty(), _empty(), _empty()
    nodes[0], depths[0], node_count, edge_count = root, 0, 1, 0
    marks, number = reached
    marks[root] = number
    level_start, level, plain = 0, 0, not _has(smallest, datasets[root])
    while plain and level_start < node_count <= enough and level <= deepest:
        level_end, level_edges = node_count, edge_count
        at = level_start
        while plain and at < level_end:
            node = nodes[at]
            first = edge_count
            edges, edge_count = _edges_of(node, rows, edges, edge_count)
            near, far = _room(near, edge_count), _room(far, edge_count)
            plain = not _has(starred, datasets[node])
            for place in range(first, edge_count):
                end = far_ends[edges[place]]
                plain = plain and not _has(smallest, datasets[end])
                near[place], far[place] = node, end
                if marks[end] != number:
                    marks[end] = number
                    nodes, depths = _room(nodes, node_count + 1), _room(depths, node_count + 1)
                    nodes[node_count], depths[node_count] = end, level + 1
                    node_count += 1
            at += 1
        if plain:
            level += 1
            level_start = level_end
        else:
            node_count, edge_count = level_end, level_edges
    return (
        nodes[:node_count],
        depths[:node_count],
        edges[:edge_count],
        near[:edge_count],
        far[:edge_count],
        level_start,
        level,
    )


def warm() -> None:
    """Compile both walks by walking nowhere."""
    none, byte = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    rows = RowArrays(none, none[:0], none[:0], none, 0)
    walk_nodes(0, rows, none, byte, 0, none, none, (byte, 1), (byte, 1), MANY, 1)
    walk_columns(0, rows, none, none, np.zeros(1, np.bool_), none, (byte, 1), MANY, 1)
