"""The number of items that each vertex of a graph reaches: exact, without listing pairs.

The graph is condensed to an acyclic one and sorted by level. A vertex reaches the union of what
its successors reach, kept as one bit for each target. Targets are processed in blocks to limit
memory. Blocks are independent of each other, so Spark tasks can count them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.graph.index.vectors import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Ints = npt.NDArray[np.int64]


class CondensedGraph(NamedTuple):
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


def condense(size: int, source: Ints, target: Ints, weight: Ints) -> CondensedGraph:
    """Condense the cycles of a graph; of parallel edges the heaviest stays."""
    place = strong_components(size, source, target)
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
    return CondensedGraph(number[place], count, a[by_source], b[by_source], w[by_source], levels)


def strong_components(size: int, source: Ints, target: Ints) -> Ints:
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


_WORD_BITS = 64
_BLOCK_WORDS = 64  # of a block: 4096 targets
_EDGES_PER_SLICE = 100_000
_FEW_EDGES = 16
_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


class VertexItems(NamedTuple):
    """What is counted: each vertex stands for an item (-1: for none), each item has a kind."""

    of: Ints
    kind: Ints


class Piece(NamedTuple):
    """A part of a graph that nothing else hangs together with, or several small such parts."""

    levels: Ints
    source: Ints
    target: Ints
    size: int
    vertices: Ints  # their numbers in the condensed graph
    owner: Ints  # the local vertex of each (vertex, item) pair
    item: Ints  # its item, numbered from 0 within its kind and piece
    kind: Ints


class Block(NamedTuple):
    """So many targets of one kind in one piece."""

    piece: int
    kind: int
    start: int


Bits = npt.NDArray[np.uint64]
Counted = tuple[int, Ints, Ints]  # kind, vertices of the condensed graph, how many they reach


def count_reached(
    size: int,
    source: Ints,
    target: Ints,
    items: VertexItems,
    run: Callable[[list[Piece], list[Block]], Iterable[Counted]] | None = None,
) -> list[Ints]:
    """Return, a kind at a time, how many items other than its own each vertex reaches."""
    graph = condense(size, source, target, np.zeros(len(source), np.int64))
    pieces = list(_pieces(graph, items))
    kinds = int(items.kind.max(initial=-1)) + 1
    totals = [np.zeros(graph.size, np.int64) for _ in range(kinds)]
    for kind, vertices, counts in (run or count_in_process)(pieces, list(_blocks(pieces))):
        totals[kind][vertices] += counts
    return [_without_own(total[graph.place], items, kind) for kind, total in enumerate(totals)]


def longest_paths(size: int, source: Ints, target: Ints, weight: Ints) -> Ints:
    """Return the weight of the heaviest way onward from each vertex; a cycle weighs nothing."""
    graph = condense(size, source, target, weight)
    depth = np.zeros(graph.size, np.int64)
    for rows in _edge_slices(graph.levels, graph.source):
        ends = graph.source[rows]
        np.maximum.at(depth, ends, depth[graph.target[rows]] + graph.weight[rows])
    return depth[graph.place]


def count_in_process(pieces: list[Piece], blocks: list[Block]) -> Iterator[Counted]:
    """Count the blocks one after the other in this process."""
    for block in blocks:
        yield count_block(pieces[block.piece], block)


def count_block(piece: Piece, block: Block) -> Counted:
    """Count how many targets of a block each vertex of its piece reaches, itself included.

    Only vertices that reach any of them get bits.
    """
    inside = (piece.kind == block.kind) & (piece.item >= block.start)
    inside &= piece.item < block.start + _BLOCK_WORDS * _WORD_BITS
    owner, item = piece.owner[inside], piece.item[inside] - block.start
    vertices = _reaching(piece, owner)
    local = np.zeros(piece.size, np.int64)
    local[vertices] = np.arange(len(vertices))
    bits = _own_bits(len(vertices), local[owner], item)
    kept = np.flatnonzero(np.isin(piece.target, vertices, kind="table"))
    source, target = local[piece.source[kept]], local[piece.target[kept]]
    for rows in _edge_slices(np.searchsorted(vertices, piece.levels), source):
        _unite(bits, source[rows], target[rows])
    return block.kind, piece.vertices[vertices], _count_bits(bits)


def _reaching(piece: Piece, targets: Ints) -> Ints:
    """Return the vertices from which any of the targets is reached, themselves included."""
    reach = np.zeros(piece.size, np.bool_)
    reach[targets] = True
    for rows in _edge_slices(piece.levels, piece.source):
        reach[piece.source[rows][reach[piece.target[rows]]]] = True
    return np.flatnonzero(reach)


def _own_bits(size: int, owner: Ints, item: Ints) -> Bits:
    width = int(item.max(initial=0)) // _WORD_BITS + 1
    bits = np.zeros((size, width), np.uint64)
    bit = np.uint64(1) << (item % _WORD_BITS).astype(np.uint64)
    np.bitwise_or.at(bits, (owner, item // _WORD_BITS), bit)
    return bits


def _unite(bits: Bits, source: Ints, target: Ints) -> None:
    """Give each source the bits of its targets; sources are sorted, and no source is a target."""
    first = np.flatnonzero(np.diff(source, prepend=-1))
    counts = np.diff(first, append=len(source))
    # The first edge of every source, then the second, …: three times as fast as reducing rows of
    # two or three, which most are.
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
    """Yield the edges that leave each level, the last levels' targets being done before."""
    bounds = np.searchsorted(source, levels)
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        # A part at a time: the bits of all its targets are held at once.
        for at in range(start, end, _EDGES_PER_SLICE):
            yield slice(at, min(at + _EDGES_PER_SLICE, end))


def _without_own(total: Ints, items: VertexItems, kind: int) -> Ints:
    own = np.zeros(len(total), np.int64)
    counted = items.of >= 0
    own[counted] = items.kind[items.of[counted]] == kind
    return total - own


def _pieces(graph: CondensedGraph, items: VertexItems) -> Iterator[Piece]:
    component = weak_components(graph.size, graph.source, graph.target)
    group = _groups(component)
    counted = np.flatnonzero(items.of >= 0)
    owner, item = graph.place[counted], items.of[counted]
    pairs = np.unique(np.stack([owner, item]), axis=1)
    for number in range(int(group.max(initial=-1)) + 1):
        vertices = np.flatnonzero(group == number)
        edges = group[graph.source] == number
        mine = pairs[:, group[pairs[0]] == number]
        yield _piece(graph, vertices, edges, mine, items)


def _groups(component: Ints) -> Ints:
    """Put components together until a group is worth a block of its own."""
    names, inverse, sizes = np.unique(component, return_inverse=True, return_counts=True)
    del names
    number = np.cumsum(sizes) // (_BLOCK_WORDS * _WORD_BITS)
    return np.unique(number, return_inverse=True)[1][inverse]


def _piece(
    graph: CondensedGraph,
    vertices: Ints,
    edges: npt.NDArray[np.bool_],
    pairs: Ints,
    items: VertexItems,
) -> Piece:
    local = np.zeros(graph.size, np.int64)
    local[vertices] = np.arange(len(vertices))
    kind = items.kind[pairs[1]]
    item = np.zeros(len(kind), np.int64)
    for each in np.unique(kind):
        of_kind = kind == each
        item[of_kind] = np.unique(pairs[1][of_kind], return_inverse=True)[1]
    return Piece(
        levels=np.searchsorted(vertices, graph.levels),
        source=local[graph.source[edges]],
        target=local[graph.target[edges]],
        size=len(vertices),
        vertices=vertices,
        owner=local[pairs[0]],
        item=item,
        kind=kind,
    )


def _blocks(pieces: list[Piece]) -> Iterator[Block]:
    for number, piece in enumerate(pieces):
        for kind in np.unique(piece.kind).tolist():
            most = int(piece.item[piece.kind == kind].max()) + 1
            for start in range(0, most, _BLOCK_WORDS * _WORD_BITS):
                yield Block(number, kind, start)
