"""A directed graph made acyclic and sorted: every cycle one vertex, and vertices by level.

Lineage is nearly acyclic. What is not in a cycle is peeled off level by level with array
operations; only what is left, if anything, is searched vertex by vertex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Condensed(NamedTuple):
    """`place` is the condensed vertex of each vertex; edges are between condensed ones, by level.

    Vertices are numbered so that an edge always leads from a larger number to a smaller one, and
    `levels` are the numbers at which each level begins: the first level has no edge onward.
    """

    place: Ints
    size: int
    source: Ints  # sorted
    target: Ints
    weight: Ints
    levels: Ints


def condense(size: int, source: Ints, target: Ints, weight: Ints) -> Condensed:
    """Condense the cycles of a graph; of parallel edges the heaviest stays."""
    place = find_cycles(size, source, target)
    count = int(place.max(initial=-1)) + 1
    a, b = place[source], place[target]
    a, b, w = _distinct(a[a != b], b[a != b], weight[a != b])
    level = _levels(count, a, b)
    order = np.argsort(level, kind="stable")
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    a, b = number[a], number[b]
    by_source = np.argsort(a, kind="stable")
    depth = int(level.max(initial=0)) + 1
    levels = np.searchsorted(level[order], np.arange(depth + 1))
    return Condensed(number[place], count, a[by_source], b[by_source], w[by_source], levels)


def find_cycles(size: int, source: Ints, target: Ints) -> Ints:
    """Return a number for each vertex, the same for those that lie on a common cycle."""
    core = _core(size, source, target)
    place = np.arange(size)
    if core.any():
        inside = core[source] & core[target]
        members = np.flatnonzero(core)
        local = np.searchsorted(members, np.stack([source[inside], target[inside]]))
        place[members] = members[_strong_roots(len(members), local[0], local[1])]
    return np.unique(place, return_inverse=True)[1].astype(np.int64)


def weak_components(size: int, source: Ints, target: Ints) -> Ints:
    """Return for each vertex the smallest one that it hangs together with."""
    label = np.arange(size)
    while True:
        low = np.minimum(label[source], label[target])
        new = label.copy()
        np.minimum.at(new, label[source], low)
        np.minimum.at(new, label[target], low)
        while ((jumped := new[new]) != new).any():
            new = jumped
        if (new == label).all():
            return label
        label = new


def _core(size: int, source: Ints, target: Ints) -> npt.NDArray[np.bool_]:
    """Mark the vertices that remain when those without an edge in or out are taken off."""
    alive = np.ones(size, np.bool_)
    edges = np.arange(len(source))
    while True:
        has_out = np.zeros(size, np.bool_)
        has_in = np.zeros(size, np.bool_)
        has_out[source[edges]] = True
        has_in[target[edges]] = True
        keep = has_out & has_in
        if (keep == alive).all():
            return alive
        alive = keep
        edges = edges[alive[source[edges]] & alive[target[edges]]]


def _strong_roots(size: int, source: Ints, target: Ints) -> Ints:
    """Tarjan's algorithm with a stack of its own: return one member of each vertex's cycle."""
    starts, onward = _rows(size, source, target)
    index = [-1] * size
    low = [0] * size
    root = np.arange(size)
    waiting: list[int] = []
    on_stack = [False] * size
    clock = 0
    for begin in range(size):
        if index[begin] >= 0:
            continue
        calls = [(begin, starts[begin])]
        while calls:
            vertex, at = calls.pop()
            if at == starts[vertex]:
                index[vertex] = low[vertex] = clock
                clock += 1
                waiting.append(vertex)
                on_stack[vertex] = True
            descended = False
            while at < starts[vertex + 1]:
                other = onward[at]
                at += 1
                if index[other] < 0:
                    calls.append((vertex, at))
                    calls.append((other, starts[other]))
                    descended = True
                    break
                if on_stack[other]:
                    low[vertex] = min(low[vertex], index[other])
            if descended:
                continue
            if low[vertex] == index[vertex]:
                _close(vertex, waiting, on_stack, root)
            if calls:
                above = calls[-1][0]
                low[above] = min(low[above], low[vertex])
    return root


def _close(vertex: int, waiting: list[int], on_stack: list[bool], root: Ints) -> None:
    while True:
        member = waiting.pop()
        on_stack[member] = False
        root[member] = vertex
        if member == vertex:
            return


def _rows(size: int, source: Ints, target: Ints) -> tuple[list[int], list[int]]:
    order = np.argsort(source, kind="stable")
    starts = np.searchsorted(source[order], np.arange(size + 1))
    return starts.tolist(), target[order].tolist()


def _distinct(source: Ints, target: Ints, weight: Ints) -> tuple[Ints, Ints, Ints]:
    order = np.lexsort((-weight, target, source))
    source, target, weight = source[order], target[order], weight[order]
    first = np.ones(len(source), np.bool_)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[first], target[first], weight[first]


def _levels(size: int, source: Ints, target: Ints) -> Ints:
    """Return how many edges the longest way onward from each vertex has."""
    level = np.zeros(size, np.int64)
    left = np.bincount(source, minlength=size)
    order = np.argsort(target, kind="stable")
    entering = source[order]
    starts = np.searchsorted(target[order], np.arange(size + 1))
    done = np.flatnonzero(left == 0)
    depth = 0
    while len(done):
        level[done] = depth
        depth += 1
        before = _gather(entering, starts, done)
        np.subtract.at(left, before, 1)
        reached = np.unique(before)
        done = reached[left[reached] == 0]
    return level


def _gather(values: Ints, starts: Ints, rows: Ints) -> Ints:
    """Return the values of several rows of a compressed table, one after the other."""
    lengths = starts[rows + 1] - starts[rows]
    offsets = np.repeat(starts[rows] - np.cumsum(lengths) + lengths, lengths)
    found: Ints = values[offsets + np.arange(int(lengths.sum()))]
    return found
