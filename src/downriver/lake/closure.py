"""How much each vertex of a graph reaches, exactly, without listing any pair.

A bit a target: from the last level to the first, what a vertex reaches is the union of what its
successors do. Targets are taken in blocks, so memory is vertices times a block, and blocks are
independent, so they can be counted anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.graph.adjacency import ranges
from downriver.lake.condense import Condensed, Ints, condense, weak_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_WORD = 64
_WORDS = 64  # of a block: 4096 targets
_EDGES = 100_000
_FEW = 16
_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


class Items(NamedTuple):
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
    items: Items,
    run: Callable[[list[Piece], list[Block]], Iterable[Counted]] | None = None,
) -> list[Ints]:
    """Return, a kind at a time, how many items other than its own each vertex reaches."""
    graph = condense(size, source, target, np.zeros(len(source), np.int64))
    pieces = list(_pieces(graph, items))
    kinds = int(items.kind.max(initial=-1)) + 1
    totals = [np.zeros(graph.size, np.int64) for _ in range(kinds)]
    for kind, vertices, counts in (run or count_here)(pieces, list(_blocks(pieces))):
        totals[kind][vertices] += counts
    return [_without_own(total[graph.place], items, kind) for kind, total in enumerate(totals)]


def longest_ways(size: int, source: Ints, target: Ints, weight: Ints) -> Ints:
    """Return the weight of the heaviest way onward from each vertex; a cycle weighs nothing."""
    graph = condense(size, source, target, weight)
    depth = np.zeros(graph.size, np.int64)
    for rows in _edge_slices(graph.levels, graph.source):
        ends = graph.source[rows]
        np.maximum.at(depth, ends, depth[graph.target[rows]] + graph.weight[rows])
    return depth[graph.place]


def count_here(pieces: list[Piece], blocks: list[Block]) -> Iterator[Counted]:
    """Count the blocks one after the other in this process."""
    for block in blocks:
        yield count_block(pieces[block.piece], block)


def count_block(piece: Piece, block: Block) -> Counted:
    """Count how many targets of a block each vertex of its piece reaches, itself included.

    Only vertices that reach any of them get bits.
    """
    inside = (piece.kind == block.kind) & (piece.item >= block.start)
    inside &= piece.item < block.start + _WORDS * _WORD
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
    width = int(item.max(initial=0)) // _WORD + 1
    bits = np.zeros((size, width), np.uint64)
    bit = np.uint64(1) << (item % _WORD).astype(np.uint64)
    np.bitwise_or.at(bits, (owner, item // _WORD), bit)
    return bits


def _unite(bits: Bits, source: Ints, target: Ints) -> None:
    """Give each source the bits of its targets; sources are sorted, and no source is a target."""
    first = np.flatnonzero(np.diff(source, prepend=-1))
    counts = np.diff(first, append=len(source))
    # The first edge of every source, then the second, …: three times as fast as reducing rows of
    # two or three, which most are.
    for nth in range(min(int(counts.max(initial=0)), _FEW)):
        at = first[counts > nth] + nth
        bits[source[at]] |= bits[target[at]]
    long = counts > _FEW
    if long.any():
        rest = ranges(first[long] + _FEW, counts[long] - _FEW)
        starts = np.cumsum(counts[long] - _FEW) - (counts[long] - _FEW)
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
        for at in range(start, end, _EDGES):
            yield slice(at, min(at + _EDGES, end))


def _without_own(total: Ints, items: Items, kind: int) -> Ints:
    own = np.zeros(len(total), np.int64)
    counted = items.of >= 0
    own[counted] = items.kind[items.of[counted]] == kind
    return total - own


def _pieces(graph: Condensed, items: Items) -> Iterator[Piece]:
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
    number = np.cumsum(sizes) // (_WORDS * _WORD)
    return np.unique(number, return_inverse=True)[1][inverse]


def _piece(
    graph: Condensed, vertices: Ints, edges: npt.NDArray[np.bool_], pairs: Ints, items: Items
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
            for start in range(0, most, _WORDS * _WORD):
                yield Block(number, kind, start)
