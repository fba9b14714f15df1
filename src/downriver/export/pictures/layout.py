"""The layout of a drawing: layers along the flow, few crossings, straight lines.

`lay_out` decides which layer a node is in and where in that layer; `spread` turns the order into
heights on paper. Both are deterministic: the drawing of a graph does not depend on the order of its
nodes and edges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Edge: TypeAlias = tuple[str, str]
_Arc: TypeAlias = tuple[int, int]
_Neighbours: TypeAlias = "Mapping[Slot, list[tuple[Slot, float]]]"

_ROUNDS = 8
_PATIENCE = 2  # rounds without fewer crossings before giving up
_LANES_PER_NODE = 4


class Slot(NamedTuple):
    """A place in the drawing: layers count along the flow, orders count down a layer."""

    layer: int
    order: int


class Place(NamedTuple):
    """Where a screen shows a node: its layer, and the height of its middle in that layer."""

    layer: int
    height: float


class Layout(msgspec.Struct, frozen=True):
    """The slot of every node, and the slots left free for edges that cross several layers.

    Lanes are listed from the source of their edge to its target. Very long edges may have none.
    """

    slots: dict[str, Slot]
    lanes: dict[Edge, tuple[Slot, ...]]


class Link(NamedTuple):
    """Two slots that should be level. An edge joins them at these distances below their tops."""

    source: Slot
    source_offset: float
    target: Slot
    target_offset: float


def lay_out(
    node_ids: Sequence[str], edges: Sequence[Edge], places: Mapping[str, Place] | None = None
) -> Layout:
    """Place nodes in layers so that edges point to later layers, except one edge in each cycle.

    Every edge must join two of `node_ids`. An edge from a node to itself is ignored. The layers and
    orders of `places` are kept if they are those of all nodes and no edge stays inside a layer.
    """
    names = sorted(set(node_ids))
    index = {name: number for number, name in enumerate(names)}
    arcs = sorted({(index[source], index[target]) for source, target in edges if source != target})
    known = [places[name] for name in names if name in places] if places else []
    if len(known) == len(names) and all(known[a].layer != known[b].layer for a, b in arcs):
        ranks = _Ranks.kept(known, arcs)
        slots = ranks.number(ranks.rows)
    else:
        walk = _walk(len(names), arcs)
        forward = sorted({arc[::-1] if arc in walk.back else arc for arc in arcs})
        layers = _layer(walk.topological, forward)
        ranks = _Ranks.of(layers, walk.preorder, forward)
        slots = ranks.uncross()
    return Layout(
        slots={name: slots[number] for name, number in index.items()},
        lanes={
            (names[source], names[target]): tuple(
                slots[point] for point in ranks.lane(source, target)
            )
            for source, target in arcs
        },
    )


class _Walk(NamedTuple):
    """The result of one depth-first walk."""

    preorder: list[int]  # the order in which nodes were first visited
    topological: list[int]  # an order in which only back edges point backwards
    back: set[_Arc]


def _walk(count: int, arcs: list[_Arc]) -> _Walk:
    """Walk the graph from its sources, with a stack: long chains exceed the recursion limit."""
    following: list[list[int]] = [[] for _ in range(count)]
    for source, target in arcs:
        following[source].append(target)
    entered = {target for _, target in arcs}
    preorder, finished, back = [-1] * count, [False] * count, set()
    postorder: list[int] = []
    met = 0
    # Sources first, so that a cycle is cut at the edge that returns to its first node.
    for start in sorted(range(count), key=lambda node: (node in entered, node)):
        stack = [(start, iter(following[start]))] if preorder[start] < 0 else []
        while stack:
            node, ahead = stack[-1]
            if preorder[node] < 0:
                preorder[node], met = met, met + 1
            for target in ahead:
                if preorder[target] < 0:
                    stack.append((target, iter(following[target])))
                    break
                if not finished[target]:
                    back.add((node, target))
            else:
                finished[node] = True
                postorder.append(node)
                stack.pop()
    return _Walk(preorder, postorder[::-1], back)


def _layer(topological: list[int], forward: list[_Arc]) -> list[int]:
    """Give each node the length of the longest path to it, then draw it close to its readers."""
    before: defaultdict[int, list[int]] = defaultdict(list)
    after: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in forward:
        after[source].append(target)
        before[target].append(source)
    layers = [0] * len(topological)
    for node in topological:
        layers[node] = 1 + max((layers[source] for source in before[node]), default=-1)
    for node in reversed(topological):
        # Moving right stretches the edges that enter and shortens those that leave.
        if after[node] and len(after[node]) >= len(before[node]):
            layers[node] = min(layers[target] for target in after[node]) - 1
    return layers


class _Ranks:
    """Layers of points — nodes, and the lanes of long edges — being put in order."""

    def __init__(
        self, rows: list[list[int]], steps: list[_Arc], lanes: dict[_Arc, list[int]]
    ) -> None:
        self.rows = rows
        self.lanes = lanes
        count = sum(map(len, rows))
        self.before: list[list[int]] = [[] for _ in range(count)]
        self.after: list[list[int]] = [[] for _ in range(count)]
        for source, target in steps:
            self.after[source].append(target)
            self.before[target].append(source)
        self.position = [0] * count
        for row in rows:
            self._number(row)

    @classmethod
    def kept(cls, places: list[Place], arcs: list[_Arc]) -> _Ranks:
        """Keep nodes in their places, and long edges on the straight line between their ends."""
        dense = {layer: number for number, layer in enumerate(sorted({p.layer for p in places}))}
        layers = [dense[place.layer] for place in places]
        forward = {(a, b) if layers[a] < layers[b] else (b, a) for a, b in arcs}
        heights = [place.height for place in places]
        return cls.of(layers, heights, sorted(forward), straight=True)

    @classmethod
    def of(
        cls,
        layers: list[int],
        preorder: Sequence[float],
        forward: list[_Arc],
        *,
        straight: bool = False,
    ) -> _Ranks:
        """Cut edges that cross layers into steps from each layer to the next.

        Lanes are beside the target of their edge, or `straight` between its ends.
        """
        layers, order = layers.copy(), [*preorder]
        steps: list[_Arc] = []
        lanes: dict[_Arc, list[int]] = {}
        room = _LANES_PER_NODE * len(layers)
        for source, target in sorted(forward, key=lambda arc: layers[arc[1]] - layers[arc[0]]):
            crossed = range(layers[source] + 1, layers[target])
            room -= len(crossed)
            # Lanes would otherwise grow with nodes times edges, so the longest edges have none.
            if room < 0:
                break
            lane = list(range(len(layers), len(layers) + len(crossed)))
            layers += crossed
            start, end = order[source] if straight else order[target], order[target]
            order += [start + (end - start) * n / (len(lane) + 1) for n in range(1, len(lane) + 1)]
            lanes[source, target] = lane
            steps += zip([source, *lane], [*lane, target], strict=True)
        rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
        for point in sorted(range(len(layers)), key=lambda point: (order[point], point)):
            rows[layers[point]].append(point)
        return cls(rows, steps, lanes)

    def uncross(self) -> list[Slot]:
        """Order each layer by the one before, forwards and backwards; return the best order."""
        best, fewest, patience = [row.copy() for row in self.rows], self._crossings(), _PATIENCE
        for _ in range(_ROUNDS):
            if not fewest or not patience:
                break
            self._sweep(self.rows[1:], self.before)
            self._sweep(self.rows[-2::-1], self.after)
            crossings = self._crossings()
            patience -= 1
            if crossings < fewest:
                best, fewest, patience = [row.copy() for row in self.rows], crossings, _PATIENCE
        return self.number(best)

    def number(self, rows: list[list[int]]) -> list[Slot]:
        """Return the slot of each point in layers of this order."""
        slots = [Slot(0, 0)] * len(self.position)
        for layer, row in enumerate(rows):
            for order, point in enumerate(row):
                slots[point] = Slot(layer, order)
        return slots

    def lane(self, source: int, target: int) -> list[int]:
        """Return the points an edge passes, in its own direction."""
        # One of the two is empty, because only an edge or its reverse points forward.
        return self.lanes.get((source, target), []) + self.lanes.get((target, source), [])[::-1]

    def _sweep(self, rows: Iterable[list[int]], beside: list[list[int]]) -> None:
        """Order each row by the mean position of its points' neighbours (the barycenter)."""
        at = self.position.__getitem__
        for row in rows:
            means = {
                point: sum(map(at, beside[point])) / len(beside[point])
                for point in row
                if beside[point]
            }
            moved = iter(sorted(means, key=means.__getitem__))
            # A point with no neighbour on this side keeps its place.
            row[:] = [next(moved) if point in means else point for point in row]
            self._number(row)

    def _number(self, row: list[int]) -> None:
        for order, point in enumerate(row):
            self.position[point] = order

    def _crossings(self) -> int:
        """Count the pairs of steps that cross."""
        at, total = self.position.__getitem__, 0
        for row in self.rows:
            ends: list[int] = []
            for target in [end for point in row for end in sorted(map(at, self.after[point]))]:
                above = bisect_right(ends, target)
                total += len(ends) - above
                ends.insert(above, target)
        return total


def spread(
    heights: Mapping[Slot, float], links: Iterable[Link], *, gap: float
) -> dict[Slot, float]:
    """Return the top of each slot, from 0 down: in order, `gap` apart, links as level as can be."""
    layers: defaultdict[int, list[Slot]] = defaultdict(list)
    for slot in sorted(heights):
        layers[slot.layer].append(slot)
    rows = [layers[number] for number in sorted(layers)]
    starts = {slot: start for row in rows for slot, start in _stack(row, heights, gap)}
    before, after = _neighbours(links)
    either = {slot: [*before.get(slot, ()), *after.get(slot, ())] for slot in starts}
    tops = starts.copy()
    # One side at a time straightens long chains in a single sweep. Both sides together, in the end,
    # centre each slot between its neighbours.
    for forward, backward in [(before, after)] * 2 + [(either, either)] * 3:
        for row in rows:
            _level(row, starts, forward, tops)
        for row in reversed(rows):
            _level(row, starts, backward, tops)
    highest = min(tops.values(), default=0.0)
    return {slot: top - highest for slot, top in tops.items()}


def _stack(
    row: list[Slot], heights: Mapping[Slot, float], gap: float
) -> Iterator[tuple[Slot, float]]:
    """Stack a layer without slack, centred on zero."""
    steps = [heights[slot] + gap for slot in row]
    middle = (sum(steps) - gap) / 2
    starts = accumulate(steps[:-1], initial=-middle)
    return zip(row, starts, strict=True)


def _neighbours(links: Iterable[Link]) -> tuple[_Neighbours, _Neighbours]:
    """Return the neighbours of each slot with their weights, in earlier and in later layers."""
    before: defaultdict[Slot, list[tuple[Slot, float]]] = defaultdict(list)
    after: defaultdict[Slot, list[tuple[Slot, float]]] = defaultdict(list)
    for source, source_offset, target, target_offset in links:
        drop = source_offset - target_offset
        near, far = (before, after) if source.layer < target.layer else (after, before)
        near[target].append((source, drop))
        far[source].append((target, -drop))
    return before, after


def _level(
    row: list[Slot], starts: Mapping[Slot, float], neighbours: _Neighbours, tops: dict[Slot, float]
) -> None:
    """Move each slot of a layer to the mean of its neighbours, as close as the order allows.

    Pool adjacent violators: slots that would overlap form a block at the mean of the ideal
    positions of its members. This is the exact least-squares answer, in one pass.
    """
    blocks: list[tuple[float, float, int]] = []  # ideal_top, weight, members
    for slot in row:
        neighbour_tops = [tops[other] + drop for other, drop in neighbours.get(slot, ())]
        weight = float(len(neighbour_tops) or 1)
        ideal_top = (sum(neighbour_tops) / weight if neighbour_tops else tops[slot]) - starts[slot]
        members = 1
        while blocks and blocks[-1][0] > ideal_top:
            earlier, earlier_weight, count = blocks.pop()
            ideal_top = (ideal_top * weight + earlier * earlier_weight) / (weight + earlier_weight)
            weight, members = weight + earlier_weight, members + count
        blocks.append((ideal_top, weight, members))
    shifts = [ideal_top for ideal_top, _, members in blocks for _ in range(members)]
    tops.update({slot: starts[slot] + shift for slot, shift in zip(row, shifts, strict=True)})
