"""Possible cuts: one dataset under two names, so that a trace may end too early.

The graph joins names that are certainly one dataset (`graph/index/name_index.py`). This module
finds the pairs that may be one dataset: one is read, the other is written, and their names differ
only in spelling. A person decides with `downriver same`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.answers.view import limit_blind_spots
from downriver.graph.walk.node_walk import reach_nodes
from downriver.model.answers import BlindSpot, PossibleCut, PossibleCuts
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import NameDifference, compare_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.graph.index.vectors import Flags, Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader


class _Pair(NamedTuple):
    """Two datasets that may be one: a job may write one name and another job read the other."""

    written: int
    read: int


_MOST_COMPARED = 500_000  # pairs of names, for one answer


class CutDetector:
    """Finds the possible cuts of one state of the graph."""

    def __init__(self, index: GraphSnapshot, reader: CatalogReader) -> None:
        self._graph = index.nodes
        self._reader = reader
        self._identities = index.nodes.identities
        self._names = index.nodes.names
        self._not_compared: list[int] = []  # names that too many others resemble
        self._apart = {
            frozenset(map(self._identities.canonical, (one, other)))
            for one, other, same, _ in self._identities.statements()
            if not same
        }

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """Return a blind spot for each possible cut at the nodes that a walk reached."""
        cuts = self._rendered(self._at(reached, downstream=downstream))
        spots = [
            BlindSpot(
                kind="possible_cut",
                entity=cut.written if downstream else cut.read,
                message=_message(cut, downstream=downstream),
            )
            for cut in cuts
        ]
        return [*limit_blind_spots(spots, len(spots)), *self._uncompared()]

    def _uncompared(self) -> list[BlindSpot]:
        if not self._not_compared:
            return []
        count, first = len(self._not_compared), self._not_compared[0]
        message = (
            f"{count} names, of which this is the first, were not compared with the datasets that "
            "have the same last part: there are too many. The data may continue at one of them"
        )
        entity = str(self._reader.nodes.by_ids([first])[first])
        return [BlindSpot(kind="possible_cut", entity=entity, message=message)]

    def every_cut(self) -> PossibleCuts:
        """Return all possible cuts of the graph, and the names that were not compared."""
        ends = self._graph.flow.ends
        nodes = np.unique(np.concatenate([ends.source.values, ends.target.values]))
        pairs = self._at(self._identities.canonicals(nodes), downstream=False)
        blind_spots = self._uncompared()
        return PossibleCuts(
            cuts=self._rendered(pairs), complete=not blind_spots, blind_spots=blind_spots
        )

    # Pairs

    def _at(self, reached: Ints, *, downstream: bool) -> set[_Pair]:
        pairs = set(self._spelled_alike(reached, downstream=downstream))
        pairs |= set(self._contained(reached, downstream=downstream))
        pairs |= set(self._prefixed(reached, downstream=downstream))
        return {
            pair
            for pair in pairs
            if frozenset(pair) not in self._apart and not self._is_fed_by(pair.written, pair.read)
        }

    def _is_fed_by(self, written: int, read: int) -> bool:
        """Return whether the written dataset derives from the dataset that is read.

        If so, they are two datasets: for example a model `orders` derived from `shop.orders`.
        """
        return written in reach_nodes(self._graph, read, downstream=True).nodes

    def _pair(self, node: int, other: int, *, downstream: bool) -> _Pair:
        return _Pair(node, other) if downstream else _Pair(other, node)

    def _is_used(self, node: int, *, downstream: bool) -> bool:
        """Return whether a dataset is read (downstream) or written, under any of its names."""
        ends = self._graph.flow.ends
        names = np.array(self._identities.group(node), np.int32)
        return len((ends.leaving if downstream else ends.entering).of(names)) > 0

    def _may_continue(self, node: int, other: int, *, downstream: bool) -> bool:
        """Return whether `other` has further edges, and one of the two is only read or written."""
        return self._is_used(other, downstream=downstream) and (
            not self._is_used(other, downstream=not downstream)
            or not self._is_used(node, downstream=downstream)
        )

    def _spelled_alike(self, reached: Ints, *, downstream: bool) -> Iterator[_Pair]:
        if not self._names.key_of:
            return
        shared = self._names.key_of
        for node in reached.tolist():
            names = self._identities.group(node)
            if not any(name in shared for name in names):
                continue
            for other in self._others(node, self._names.similar(names)):
                if self._may_continue(node, other, downstream=downstream):
                    yield self._pair(node, other, downstream=downstream)

    def _contained(self, reached: Ints, *, downstream: bool) -> Iterator[_Pair]:
        if not self._names.containments:
            return
        reached_nodes = set(reached.tolist())
        for file, folder in self._names.containments:
            ends = self._identities.canonical(file), self._identities.canonical(folder)
            for node, other in (ends, ends[::-1]):
                if (
                    node in reached_nodes
                    and node != other
                    and self._is_used(node, downstream=not downstream)
                    and self._may_continue(node, other, downstream=downstream)
                ):
                    yield self._pair(node, other, downstream=downstream)

    def _others(self, node: int, names: Iterable[int]) -> set[int]:
        return {self._identities.canonical(name) for name in names} - {node}

    def _prefixed(self, reached: Ints, *, downstream: bool) -> Iterator[_Pair]:
        """Compare each end of the walk with the datasets that have the same last part."""
        names, at = self._identities.every_name(reached)
        ends = reached[np.unique(at[self._names.namesakes(names) > 0])]
        ends = ends[~self._have_edges(ends, downstream=downstream)]
        ends = ends[self._have_edges(ends, downstream=not downstream)]
        if not len(ends):
            return
        names, at = self._identities.every_name(ends)
        compared = self._compared(names)
        self._not_compared += sorted(names[~compared].tolist())
        names, at = names[compared], at[compared]
        node_of = dict(zip(names.tolist(), ends[at].tolist(), strict=True))
        alike = np.array(self._reader.nodes.namesakes(node_of), np.int32).reshape(-1, 2)
        others = self._identities.canonicals(alike[:, 1])
        opposite = self._have_edges(others, downstream=downstream)
        opposite &= ~self._have_edges(others, downstream=not downstream)
        rows = alike[opposite]
        ids = self._reader.nodes.by_ids(np.unique(rows).tolist())
        for name, other_name in rows.tolist():
            node, other = node_of[name], self._identities.canonical(other_name)
            difference = _compare(ids[name], ids[other_name])
            if node != other and difference is NameDifference.PREFIX:
                yield self._pair(node, other, downstream=downstream)

    def _compared(self, names: Ints) -> Flags:
        """Return which names to compare: those with the fewest namesakes, up to a number of pairs.

        Thousands of datasets may have the same last part, and each pair of them is compared.
        """
        counts = self._names.namesakes(names).astype(np.int64)
        order = np.argsort(counts, kind="stable")
        compared: Flags = np.zeros(len(names), np.bool_)
        compared[order[np.cumsum(counts[order]) <= _MOST_COMPARED]] = True
        return compared

    def _have_edges(self, nodes: Ints, *, downstream: bool) -> Flags:
        """Return which nodes have further edges, under any of their names."""
        if not len(nodes):
            return np.zeros(0, np.bool_)
        names, at = self._identities.every_name(nodes)
        ends = self._graph.flow.ends
        _, places = (ends.leaving if downstream else ends.entering).of_each(names)
        used: Flags = np.zeros(len(nodes), np.bool_)
        used[at[places]] = True
        return used

    # Answers

    def _rendered(self, pairs: set[_Pair]) -> list[PossibleCut]:
        if not pairs:
            return []
        shown = self._identities.display_names(
            {node for pair in pairs for node in pair}, self._reader
        )
        cuts = [
            _render(shown[pair.written].id, shown[pair.read].id, self._difference(pair))
            for pair in pairs
        ]
        return sorted(cuts, key=lambda cut: (cut.read, cut.written))

    def _difference(self, pair: _Pair) -> NameDifference:
        """Return the smallest difference between any two names of a pair."""
        groups = [self._identities.group(node) for node in pair]
        names = self._reader.nodes.by_ids({name for group in groups for name in group})
        return min(
            (
                difference
                for one in groups[0]
                for other in groups[1]
                if (difference := _compare(names[one], names[other])) is not None
            ),
            key=list(NameDifference).index,
            default=NameDifference.PREFIX,
        )


def _compare(one: NodeId, other: NodeId) -> NameDifference | None:
    if not (isinstance(one, DatasetId) and isinstance(other, DatasetId)):
        return None
    return compare_names(one, other)


def _render(written: NodeId, read: NodeId, difference: NameDifference) -> PossibleCut:
    return PossibleCut(
        read=str(read),
        written=str(written),
        difference=difference.value,
        command=shlex.join(["downriver", "same", str(written), str(read)]),
    )


def _message(cut: PossibleCut, *, downstream: bool) -> str:
    other, verb = (cut.read, "read") if downstream else (cut.written, "written")
    return (
        f"may be the same dataset as {other}, which is {verb} under that name: the names differ "
        f"only in {cut.difference}. If they are one dataset, run: {cut.command}"
    )
