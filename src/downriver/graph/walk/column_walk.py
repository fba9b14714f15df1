"""Following the data through columns, where `*` stands for every column of a dataset.

A walk goes from state to state. Most states are columns, by their ids. `*` itself is all columns of
its dataset at once. One more kind is needed: a `* -> *` copy takes each field to the one of the
same name, and where that name is not known the walk stands at `*` while it still carries one field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.adjacency import NO_INTS, EdgeRows, Flags, GrowingArray, Ints
from downriver.graph.index.column_graph import IDENTITY, INDIRECT, STAR, ColumnGraph
from downriver.graph.index.edges import FOREVER
from downriver.graph.index.identities import Identities
from downriver.graph.index.sorted_keys import pairs
from downriver.graph.walk import compilation
from downriver.graph.walk.first_levels import EdgeLookup, FirstLevels, start_at, walk_first_levels
from downriver.graph.walk.result import WalkBuilder, WalkResult

if TYPE_CHECKING:
    from types import ModuleType

_NO_RANK = 255  # columns have no jobs between them
IMPLIED = -1  # an edge no event stated: between `*` and one of the columns it stands for


class ColumnReach(NamedTuple):
    """The states on one side of a column; those past `first_carrying` stand at a `*`."""

    states: WalkResult
    first_carrying: int
    stars: Ints

    def columns(self, states: Ints) -> Ints:
        """Return the columns at which states stand."""
        columns: Ints = states.copy()
        carrying = states >= self.first_carrying
        columns[carrying] = self.stars[states[carrying] - self.first_carrying]
        return columns

    def between_columns(self) -> WalkResult:
        """Return this reach with each state replaced by the column at which it stands."""
        states = self.states
        if not len(self.stars):
            return states
        columns = self.columns(states.nodes)
        nearest = np.sort(np.unique(columns, return_index=True)[1])
        return WalkResult(
            columns[nearest],
            states.depths[nearest],
            np.setdiff1d(self.columns(states.beyond), columns),
            states.edges,
            self.columns(states.near),
            self.columns(states.far),
        )


def reach_columns(
    columns: ColumnGraph,
    identities: Identities,
    root: int,
    *,
    downstream: bool,
    depth: int | None = None,
    as_of: int = FOREVER,
    wanted: int = 0,
) -> ColumnReach:
    """Return the columns on one side of `root`. Depth counts the derivations crossed.

    Of the columns that a `*` stands for, only those are listed that lead on, and `wanted`.
    """
    walk = ColumnWalk(columns, identities, downstream=downstream, as_of=as_of)
    beginning = walk.begin(root)
    found = WalkBuilder(beginning, columns.reached, depth)
    level = beginning.level
    frontier = beginning.frontier
    if len(frontier):
        frontier = _spread(walk, found, frontier, level, wanted)
    while len(frontier):
        level += 1
        edges, near, far = walk.expand(frontier)
        found.add_edges(edges, near, far, level)
        frontier = _spread(walk, found, found.add_nodes(far, level), level, wanted)
    return ColumnReach(found.reach(), walk.first_carrying, walk.stars)


def _spread(walk: ColumnWalk, found: WalkBuilder, new: Ints, level: int, wanted: int) -> Ints:
    """Add the columns of datasets that were reached as a whole."""
    near, far = walk.inside(new, wanted)
    if not len(near):
        return new
    found.add_edges(np.full(len(near), IMPLIED, np.int32), near, far, level)
    return np.concatenate([new, found.add_nodes(far, level)])


class ColumnWalk:
    """One direction through the column graph at one time."""

    def __init__(
        self, columns: ColumnGraph, identities: Identities, *, downstream: bool, as_of: int
    ) -> None:
        flow = columns.flow
        self._columns = columns
        self._identities = identities
        self._as_of = as_of
        self._rows = flow.leaving if downstream else flow.entering
        self._near = (flow.source if downstream else flow.target).view
        self._far = (flow.target if downstream else flow.source).view
        # States that carry a field, numbered on from the columns: the `*` they stand at, the field.
        self.first_carrying = columns.size
        self._carrying: dict[tuple[int, int], int] = {}
        self._stars: GrowingArray[np.int32] = GrowingArray(np.int32)
        self._carried: GrowingArray[np.int32] = GrowingArray(np.int32)

    def begin(self, root: int) -> FirstLevels:
        """Walk while that is cheaper than with arrays, and no `*` stands for the columns met."""
        if self._as_of != FOREVER:
            return start_at(root)
        if compiled := compilation.walks():
            return self._walk_compiled(root, compiled)
        if self._identities:
            return start_at(root)
        ranks = self._columns.rank.view.data
        steps = EdgeLookup(
            self._rows.one_by_one(),
            self._far.data,
            ranks,
            _NO_RANK,
            self._columns.star_stands_for(),
        )
        return walk_first_levels(root, steps, None)

    def _walk_compiled(self, root: int, compiled: ModuleType) -> FirstLevels:
        columns = self._columns
        *found, opened, level = compiled.walk_columns(
            root,
            self._rows.arrays(),
            self._far,
            columns.dataset.view,
            columns.starred,
            self._identities.arrays()[0],
            columns.reached.lend(columns.size),
            compiled.MANY,
        )
        return FirstLevels._make((*found, NO_INTS, found[0][opened:], level))

    @property
    def stars(self) -> Ints:
        """The columns at which the states that carry a field stand."""
        return self._stars.view

    def expand(self, states: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the edges that lead on, and for each the states it leads from and to."""
        ends, owners = self._ends(states)
        edges, at = self._rows.of_each(ends)
        if self._as_of != FOREVER:
            known = self._columns.known_by(edges, self._as_of)
            edges, at = edges[known], at[known]
        near = owners[at]
        return edges, near, self._arrivals(edges, near)

    def inside(self, states: Ints, wanted: int) -> tuple[Ints, Ints]:
        """Return (`*`, column) pairs for the columns of datasets that were reached as a whole."""
        whole = states[states < self.first_carrying]
        whole = whole[self._columns.field.view[whole] == STAR]
        inside = [self._inside(star, wanted) for star in whole.tolist()]
        near = np.repeat(whole, [len(columns) for columns in inside])
        return near, np.concatenate([NO_INTS, *inside])

    def _inside(self, star: int, wanted: int) -> Ints:
        datasets = self._identities.group(int(self._columns.dataset.view[star]))
        members = np.concatenate([self._columns.of(dataset) for dataset in datasets])
        members = members[self._columns.field.view[members] != STAR]
        edges, at = self._rows.of_each(members)
        leads_on = members[at[self._columns.known_by(edges, self._as_of)]]
        listed = np.concatenate([leads_on, members[members == wanted]])
        return np.unique(self._canonical(listed))

    def _ends(self, states: Ints) -> tuple[Ints, Ints]:
        """Return the columns whose edges are those of a state, and for each that state.

        Beside its own a column has the edges of `*`, which stands for it too, and those it has
        under the other names of its dataset.
        """
        columns, fields = self._places(states)
        datasets = self._columns.dataset.view[columns]
        several = self._columns.has_star(datasets) | self._identities.joined(datasets)
        if not several.any():
            return columns, states
        special = np.flatnonzero(several)
        names, at = self._identities.every_name(datasets[special])
        owners = states[special[at]]
        own = self._columns.find_each(names, fields[special[at]])
        stars = self._columns.find_each(names, np.full(len(names), STAR, np.int32))
        return _distinct(
            np.concatenate([columns, own, stars]), np.concatenate([states, owners, owners])
        )

    def _arrivals(self, edges: Ints, near: Ints) -> Ints:
        """Return the states that edges lead to."""
        far: Ints = self._far[edges]
        datasets = self._columns.dataset.view[far]
        _, carried = self._places(near)
        copied = self._copies(edges) & (carried != STAR)
        special = np.flatnonzero(copied | self._identities.joined(datasets))
        if not len(special):
            return far
        fields = np.where(copied, carried, self._columns.field.view[far])
        found = self._find_canonical(datasets[special], fields[special])
        arrived: Ints = far.copy()
        arrived[special] = found
        unknown = special[found == 0]
        stars = self._canonical(far[unknown])
        arrived[unknown] = self._carry(stars, fields[unknown])
        return arrived

    def _copies(self, edges: Ints) -> Flags:
        """Tell which edges take each field to the one of the same name."""
        columns = self._columns
        flags: Flags = (
            (columns.rank.view[edges] == IDENTITY)
            & (columns.field.view[self._near[edges]] == STAR)
            & (columns.field.view[self._far[edges]] == STAR)
        )
        return flags

    def _carry(self, stars: Ints, fields: Ints) -> Ints:
        """Return the states that stand at `*` and carry a field."""
        states = []
        for star, field in zip(stars.tolist(), fields.tolist(), strict=True):
            new = self.first_carrying + len(self._carrying)
            state = self._carrying.setdefault((star, field), new)
            if state == new:
                self._stars.extend([star])
                self._carried.extend([field])
            states.append(state)
        return np.array(states, np.int32)

    def _places(self, states: Ints) -> tuple[Ints, Ints]:
        """Return the column at which each state stands, and the field it is about."""
        carrying = states >= self.first_carrying
        if not carrying.any():
            return states, self._columns.field.view[states]
        columns = states.copy()
        columns[carrying] = self.stars[states[carrying] - self.first_carrying]
        fields = self._columns.field.view[columns]
        fields[carrying] = self._carried.view[states[carrying] - self.first_carrying]
        return columns, fields

    def _canonical(self, columns: Ints) -> Ints:
        """Return the columns that stand for these under all names of their datasets."""
        return self._find_canonical(
            self._columns.dataset.view[columns], self._columns.field.view[columns]
        )

    def _find_canonical(self, datasets: Ints, fields: Ints) -> Ints:
        """Return the column that stands for each field of a dataset, 0 where it is unknown."""
        names, at = self._identities.every_name(datasets)
        columns = self._columns.find_each(names, fields[at])
        found = np.full(len(datasets), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(found, at[columns > 0], columns[columns > 0])
        return np.where(found == np.iinfo(np.int32).max, 0, found).astype(np.int32)


def _distinct(columns: Ints, states: Ints) -> tuple[Ints, Ints]:
    keys = np.unique(pairs(states, columns)[columns > 0])
    return (keys & 0xFFFF_FFFF).astype(np.int32), (keys >> 32).astype(np.int32)


def canonical_column(columns: ColumnGraph, identities: Identities, column: int) -> int:
    """Return the column that stands for one under all names of its dataset."""
    datasets = identities.group(int(columns.dataset.view[column]))
    field = int(columns.field.view[column])
    return min(found for d in datasets if (found := columns.find(d, field)) is not None)


def compose_ranks(reach: WalkResult, rank_of_edge: Ints) -> Ints:
    """Return, for each node reached, how it derives from the root along the most direct path.

    A path is as indirect as its worst step, a node as direct as its best path.
    """
    near: GrowingArray[np.int32] = GrowingArray(np.int32)
    near.extend(reach.places(reach.near))
    far = reach.places(reach.far)
    onward = EdgeRows(near, smallest_fold=0)
    composed = np.full(len(reach.nodes), INDIRECT, np.int32)
    composed[0] = IDENTITY
    for rank in range(INDIRECT):
        frontier = np.flatnonzero(composed <= rank).astype(np.int32)
        while len(frontier):
            edges = onward.of(frontier)
            reached = far[edges[rank_of_edge[edges] <= rank]]
            frontier = np.unique(reached[composed[reached] > rank]).astype(np.int32)
            composed[frontier] = rank
    return composed
