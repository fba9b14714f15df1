"""Several names, one thing: symlinks and renames join datasets into one node.

Computed from the facts alone, so it does not matter which of two names was heard of first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.adjacency import SMALLEST_FOLD, Flags, GrowingArray, Ints, Longs
from downriver.graph.index.edges import Edges, Table
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader


class DisplayName(NamedTuple):
    """The name a node goes by in answers, and its other names."""

    id: NodeId
    aliases: tuple[NodeId, ...]


class Identities:
    """Which node ids are one thing. The smallest id of a group stands for it in the graph."""

    def __init__(self, smallest_fold: int = SMALLEST_FOLD) -> None:
        self._names = Edges(smallest_fold)  # ALIAS and RENAMED
        self._facet_at: GrowingArray[np.int64] = GrowingArray(
            np.int64
        )  # of each dataset's last symlinks
        # A group is a ring: each id knows the next one, and the smallest. 0: it is alone.
        self._next: GrowingArray[np.int32] = GrowingArray(np.int32)
        self._smallest: GrowingArray[np.int32] = GrowingArray(np.int32)
        self._smallest.grow(1)

    def __bool__(self) -> bool:
        """Tell whether anything goes by several names."""
        return len(self._names) > 0

    def arrays(self) -> tuple[Ints, Ints]:
        """Return the smallest id and the next one of each node's ring; 0 where it is alone."""
        return self._smallest.view, self._next.view

    def canonical(self, node: int) -> int:
        """Return the id that stands for a node in the graph."""
        known = node < self._smallest.size
        return (int(self._smallest.view[node]) if known else 0) or node

    def canonicals(self, nodes: Ints) -> Ints:
        """Return the ids that stand for many nodes."""
        if not len(self._names):
            return nodes
        smallest = self._smallest_of(nodes)
        return np.where(smallest > 0, smallest, nodes)

    def joined(self, nodes: Ints) -> Flags:
        """Tell which nodes go by several names."""
        flags: Flags = self._smallest_of(nodes) > 0
        return flags

    def _smallest_of(self, nodes: Ints) -> Ints:
        # An id past the end was never joined to anything, and neither was 0, which is no id.
        return self._smallest.view[np.where(nodes < self._smallest.size, nodes, 0)]

    def group(self, node: int) -> list[int]:
        """Return all ids of a node, the smallest first."""
        return sorted(self._ring(node))

    def every_name(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return these nodes under each of their ids, and for each its place in `nodes`."""
        places = np.arange(len(nodes))
        if not len(self._names):
            return nodes, places
        more = [
            (other, at)
            for at in np.flatnonzero(self.joined(nodes)).tolist()
            for other in self._ring(int(nodes[at]))
            if other != nodes[at]
        ]
        if not more:
            return nodes, places
        others, at = zip(*more, strict=True)
        return (
            np.concatenate([nodes, np.array(others, np.int32)]),
            np.concatenate([places, np.array(at)]),
        )

    def load(self, table: Table) -> None:
        """Take in new and changed alias and rename edges."""
        if not len(table):
            return
        size = int(max(table["source"].max(), table["target"].max())) + 1
        for array in (self._next, self._smallest):
            array.grow(size)
        self._facet_at.grow(size)
        named = np.unique(table["source"]).astype(np.int32)
        before = self._joining(named)
        self._names.put(table)
        alias = table[table["kind"] == EdgeKind.ALIAS]
        np.maximum.at(self._facet_at.view, alias["source"], alias["last_at"])
        now = self._joining(named)
        parted = self._part(np.setdiff1d(before, now))
        for edge in np.union1d(np.setdiff1d(now, before), self._joining(parted)).tolist():
            self._join(*self._ends(edge))

    def _joining(self, named: Ints) -> Ints:
        """Return the edges from these datasets that still join two names.

        Of aliases only those that the latest symlinks facet names: an older one may be about a
        reused path. A dataset is its own alias too, which dates a facet that names no other.
        """
        names = self._names
        edges = names.ends.leaving.of(named)
        source, target = names.ends.source.view[edges], names.ends.target.view[edges]
        current = names.last_at.view[edges] == self._facet_at.view[source]
        renamed = names.kind.view[edges] == EdgeKind.RENAMED
        joining: Ints = edges[(current | renamed) & (source != target)]
        return joining

    def _part(self, edges: Ints) -> Ints:
        """Undo the groups these edges held together and return their members."""
        parted = [m for e in edges.tolist() for end in self._ends(e) for m in self._ring(end)]
        for array in (self._next, self._smallest):
            array.view[parted] = 0
        return np.unique(np.array(parted, np.int32))

    def _join(self, one: int, other: int) -> None:
        if self.canonical(one) > self.canonical(other):
            one, other = other, one
        smallest = self.canonical(one)
        if smallest == self.canonical(other):
            return
        self._smallest.view[[one, *self._ring(other)]] = smallest
        after = self._next.view
        after[one], after[other] = after[other] or other, after[one] or one

    def _ring(self, node: int) -> Iterator[int]:
        yield node
        if node >= self._next.size:
            return
        after = int(self._next.view[node])
        while after not in (0, node):
            yield after
            after = int(self._next.view[after])

    def _ends(self, edge: int) -> tuple[int, int]:
        ends = self._names.ends
        return int(ends.source.view[edge]), int(ends.target.view[edge])

    # Which name speaks

    def speak(self, nodes: Iterable[int], reader: CatalogReader) -> dict[int, DisplayName]:
        """Return what each node is called."""
        if not self:
            return {node: DisplayName(name, ()) for node, name in reader.nodes(nodes).items()}
        groups = {node: self.group(node) for node in nodes}
        ids = reader.nodes({member for group in groups.values() for member in group})
        return {node: self._choose(group, ids) for node, group in groups.items()}

    def _choose(self, group: list[int], ids: dict[int, NodeId]) -> DisplayName:
        if len(group) == 1:
            return DisplayName(ids[group[0]], ())
        first, *others = sorted(group, key=lambda node: (self._precedence(node), str(ids[node])))
        return DisplayName(ids[first], tuple(sorted((ids[other] for other in others), key=str)))

    def _precedence(self, node: int) -> tuple[bool, bool, int]:
        """Say how well a name fits: the least speaks.

        A name in use before one renamed away, a logical name before a physical one, the one that
        was renamed to last before others.
        """
        names = self._names
        here = np.array([node], np.int32)
        leaving, entering = names.ends.leaving.of(here), names.ends.entering.of(here)
        away, back = self._last_rename(leaving), self._last_rename(entering)
        sources = names.ends.source.view[entering]
        logical = np.isin(entering, self._joining(sources)) & (
            names.kind.view[entering] == EdgeKind.ALIAS
        )
        return (away > back, not logical.any(), -back)

    def _last_rename(self, edges: Ints) -> int:
        renames = edges[self._names.kind.view[edges] == EdgeKind.RENAMED]
        return int(self._names.last_at.view[renames].max(initial=0))
