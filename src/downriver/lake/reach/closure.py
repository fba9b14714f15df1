"""The number of items that each vertex of a graph reaches: exact, without listing pairs.

The graph is condensed to an acyclic one and sorted by level. A vertex reaches the union of what
its successors reach, kept as one bit for each target. Targets are processed in blocks to limit
memory. Blocks are independent of each other, so Spark tasks can count them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.errors import MissingDependencyError
from downriver.graph.index.vectors import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Ints = npt.NDArray[np.int64]


class CondensedGraph(NamedTuple):
    """An acyclic graph: each vertex is a strongly connected component of the original graph.

    `component` maps original vertices to condensed ones, which are numbered by level. An edge leads
    from a larger number to a smaller one. `levels` are the numbers at which each level starts; the
    vertices of the first level have no successors.
    """

    component: Ints
    size: int
    source: Ints  # sorted
    target: Ints
    weight: Ints
    levels: Ints


def condense(size: int, source: Ints, target: Ints, weight: Ints) -> CondensedGraph:
    """Merge each cycle into one vertex. Of parallel edges, the heaviest is kept."""
    component = strong_components(size, source, target)
    count = int(component.max(initial=-1)) + 1
    a, b = component[source], component[target]
    a, b, w = _distinct(a[a != b], b[a != b], weight[a != b])
    level = _levels(count, a, b)
    order = np.argsort(level, kind="stable")
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    a, b = number[a], number[b]
    by_source = np.argsort(a, kind="stable")
    depth = int(level.max(initial=0)) + 1
    levels = np.searchsorted(level[order], np.arange(depth + 1))
    return CondensedGraph(
        number[component], count, a[by_source], b[by_source], w[by_source], levels
    )


def strong_components(size: int, source: Ints, target: Ints) -> Ints:
    """Return the number of the strongly connected component of each vertex."""
    return np.unique(_smallest_members(size, source, target, "strong"), return_inverse=True)[1]


def weak_components(size: int, source: Ints, target: Ints) -> Ints:
    """Return for each vertex the smallest vertex of its weakly connected component."""
    return _smallest_members(size, source, target, "weak")


def _smallest_members(size: int, source: Ints, target: Ints, connection: str) -> Ints:
    """Return for each vertex the smallest vertex of its component."""
    try:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components
    except ImportError as exc:
        raise MissingDependencyError("scipy", "lake") from exc
    if not size:
        return np.empty(0, np.int64)
    edges = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(size, size))
    _, component = connected_components(edges.tocsr(), directed=True, connection=connection)
    _, first = np.unique(component, return_index=True)
    return np.asarray(first[component], np.int64)


def _distinct(source: Ints, target: Ints, weight: Ints) -> tuple[Ints, Ints, Ints]:
    order = np.lexsort((-weight, target, source))
    source, target, weight = source[order], target[order], weight[order]
    first = np.ones(len(source), np.bool_)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[first], target[first], weight[first]


def _levels(size: int, source: Ints, target: Ints) -> Ints:
    """Return the length of the longest path from each vertex; -1 if it reaches a cycle."""
    level = np.full(size, -1, np.int64)
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
    """Return the concatenated values of several rows of a compressed table."""
    lengths = starts[rows + 1] - starts[rows]
    offsets = np.repeat(starts[rows] - np.cumsum(lengths) + lengths, lengths)
    gathered: Ints = values[offsets + np.arange(int(lengths.sum()))]
    return gathered


_WORD_BITS = 64
_BLOCK_WORDS = 64  # 4096 targets
_EDGES_PER_SLICE = 100_000
_FEW_EDGES = 16
_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


class VertexItems(NamedTuple):
    """The items to count: the item of each vertex (-1: none), and the kind of each item."""

    of: Ints
    kind: Ints


class GraphPart(NamedTuple):
    """A weakly connected component of the condensed graph, or several small ones."""

    levels: Ints
    source: Ints
    target: Ints
    size: int
    vertices: Ints  # in the condensed graph
    owner: Ints  # the local vertex of each (vertex, item) pair
    item: Ints  # its item, numbered from 0 within its kind and part
    kind: Ints


class TargetBlock(NamedTuple):
    """A range of items of one kind in one part of the graph."""

    part: int
    kind: int
    start: int


Bits = npt.NDArray[np.uint64]
Counted = tuple[int, Ints, Ints]  # kind, condensed vertices, and number of items reached


def count_reached(
    size: int,
    source: Ints,
    target: Ints,
    items: VertexItems,
    run: Callable[[list[GraphPart], list[TargetBlock]], Iterable[Counted]] | None = None,
) -> list[Ints]:
    """Return, for each kind, the number of items that each vertex reaches, without its own."""
    graph = condense(size, source, target, np.zeros(len(source), np.int64))
    parts = list(_graph_parts(graph, items))
    kinds = int(items.kind.max(initial=-1)) + 1
    totals = [np.zeros(graph.size, np.int64) for _ in range(kinds)]
    for kind, vertices, counts in (run or count_in_process)(parts, list(_blocks(parts))):
        totals[kind][vertices] += counts
    return [_without_own(total[graph.component], items, kind) for kind, total in enumerate(totals)]


def longest_paths(size: int, source: Ints, target: Ints, weight: Ints) -> Ints:
    """Return the weight of the heaviest path from each vertex; a cycle weighs nothing."""
    graph = condense(size, source, target, weight)
    depth = np.zeros(graph.size, np.int64)
    for rows in _edge_slices(graph.levels, graph.source):
        ends = graph.source[rows]
        np.maximum.at(depth, ends, depth[graph.target[rows]] + graph.weight[rows])
    return depth[graph.component]


def count_in_process(parts: list[GraphPart], blocks: list[TargetBlock]) -> Iterator[Counted]:
    """Count the blocks sequentially in this process."""
    for block in blocks:
        yield count_block(parts[block.part], block)


def count_block(part: GraphPart, block: TargetBlock) -> Counted:
    """Count the targets of a block that each vertex reaches, including its own.

    Only vertices that reach a target get bits.
    """
    inside = (part.kind == block.kind) & (part.item >= block.start)
    inside &= part.item < block.start + _BLOCK_WORDS * _WORD_BITS
    owner, item = part.owner[inside], part.item[inside] - block.start
    vertices = _vertices_reaching(part, owner)
    local = np.zeros(part.size, np.int64)
    local[vertices] = np.arange(len(vertices))
    bits = _own_bits(len(vertices), local[owner], item)
    kept = np.flatnonzero(np.isin(part.target, vertices, kind="table"))
    source, target = local[part.source[kept]], local[part.target[kept]]
    for rows in _edge_slices(np.searchsorted(vertices, part.levels), source):
        _unite(bits, source[rows], target[rows])
    return block.kind, part.vertices[vertices], _count_bits(bits)


def _vertices_reaching(part: GraphPart, targets: Ints) -> Ints:
    """Return the vertices that reach any of the targets, including the targets."""
    reach = np.zeros(part.size, np.bool_)
    reach[targets] = True
    for rows in _edge_slices(part.levels, part.source):
        reach[part.source[rows][reach[part.target[rows]]]] = True
    return np.flatnonzero(reach)


def _own_bits(size: int, owner: Ints, item: Ints) -> Bits:
    width = int(item.max(initial=0)) // _WORD_BITS + 1
    bits = np.zeros((size, width), np.uint64)
    bit = np.uint64(1) << (item % _WORD_BITS).astype(np.uint64)
    np.bitwise_or.at(bits, (owner, item // _WORD_BITS), bit)
    return bits


def _unite(bits: Bits, source: Ints, target: Ints) -> None:
    """Add to each source the bits of its targets. Sources are sorted, and none is a target."""
    first = np.flatnonzero(np.diff(source, prepend=-1))
    counts = np.diff(first, append=len(source))
    # First edges of all sources, then second edges, …: most sources have two or three, and for
    # these this is three times as fast as `reduceat`.
    for nth in range(min(int(counts.max(initial=0)), _FEW_EDGES)):
        at = first[counts > nth] + nth
        bits[source[at]] |= bits[target[at]]
    long = counts > _FEW_EDGES
    if long.any():
        rest = ranges(first[long] + _FEW_EDGES, counts[long] - _FEW_EDGES)
        starts = np.cumsum(counts[long] - _FEW_EDGES) - (counts[long] - _FEW_EDGES)
        bits[source[first[long]]] |= np.bitwise_or.reduceat(bits[target[rest]], starts, axis=0)


def _count_bits(bits: Bits) -> Ints:
    if hasattr(np, "bitwise_count"):  # numpy 2
        ones = np.bitwise_count(bits)
    else:
        ones = _ONES[bits.view(np.uint8)].reshape(len(bits), -1)
    counts: Ints = ones.sum(axis=1, dtype=np.int64)
    return counts


def _edge_slices(levels: Ints, source: Ints) -> Iterator[slice]:
    """Yield the edges that leave each level, in the order of the levels."""
    bounds = np.searchsorted(source, levels)
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        # In slices, because the bits of all targets of a slice are copied.
        for at in range(start, end, _EDGES_PER_SLICE):
            yield slice(at, min(at + _EDGES_PER_SLICE, end))


def _without_own(total: Ints, items: VertexItems, kind: int) -> Ints:
    own = np.zeros(len(total), np.int64)
    counted = items.of >= 0
    own[counted] = items.kind[items.of[counted]] == kind
    return total - own


def _graph_parts(graph: CondensedGraph, items: VertexItems) -> Iterator[GraphPart]:
    component = weak_components(graph.size, graph.source, graph.target)
    group = _groups(component)
    counted = np.flatnonzero(items.of >= 0)
    owner, item = graph.component[counted], items.of[counted]
    pairs = np.unique(np.stack([owner, item]), axis=1)
    for number in range(int(group.max(initial=-1)) + 1):
        vertices = np.flatnonzero(group == number)
        edges = group[graph.source] == number
        mine = pairs[:, group[pairs[0]] == number]
        yield _graph_part(graph, vertices, edges, mine, items)


def _groups(component: Ints) -> Ints:
    """Group components until a group is large enough for a block."""
    names, inverse, sizes = np.unique(component, return_inverse=True, return_counts=True)
    del names
    number = np.cumsum(sizes) // (_BLOCK_WORDS * _WORD_BITS)
    return np.unique(number, return_inverse=True)[1][inverse]


def _graph_part(
    graph: CondensedGraph,
    vertices: Ints,
    edges: npt.NDArray[np.bool_],
    pairs: Ints,
    items: VertexItems,
) -> GraphPart:
    local = np.zeros(graph.size, np.int64)
    local[vertices] = np.arange(len(vertices))
    kind = items.kind[pairs[1]]
    item = np.zeros(len(kind), np.int64)
    for each in np.unique(kind):
        of_kind = kind == each
        item[of_kind] = np.unique(pairs[1][of_kind], return_inverse=True)[1]
    return GraphPart(
        levels=np.searchsorted(vertices, graph.levels),
        source=local[graph.source[edges]],
        target=local[graph.target[edges]],
        size=len(vertices),
        vertices=vertices,
        owner=local[pairs[0]],
        item=item,
        kind=kind,
    )


def _blocks(parts: list[GraphPart]) -> Iterator[TargetBlock]:
    for number, part in enumerate(parts):
        for kind in np.unique(part.kind).tolist():
            most = int(part.item[part.kind == kind].max()) + 1
            for start in range(0, most, _BLOCK_WORDS * _WORD_BITS):
                yield TargetBlock(number, kind, start)
