"""Walks from column to column, where `*` means every column of a dataset.

A walk goes from state to state. Most states are columns, by their ids. `*` itself is all columns of
its dataset at once. There is one more kind. A `* -> *` copy leads each field to the field of the
same name. If that field is not listed, the state is `*` together with the name of the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.adjacency import EdgeRows
from downriver.graph.index.column_graph import IDENTITY, INDIRECT, STAR, ColumnGraph
from downriver.graph.index.edges import FOREVER
from downriver.graph.index.identities import Identities
from downriver.graph.index.sorted_keys import pairs
from downriver.graph.index.vectors import NO_INTS, Flags, Ints, Vector
from downriver.graph.walk import compilation
from downriver.graph.walk.first_levels import EdgeLookup, FirstLevels, start_at, walk_first_levels
from downriver.graph.walk.result import (
    UNLIMITED,
    VisitMarks,
    WalkBuilder,
    WalkResult,
    borrowed_marks,
)

if TYPE_CHECKING:
    from types import ModuleType

_NO_RANK = 255  # columns have no jobs between them
IMPLIED = -1  # an edge that no event stated: between `*` and a column of its dataset


class ColumnReach(NamedTuple):
    """The states on one side of a column. Those past `first_carrying` are a `*` with a field."""

    states: WalkResult
    first_carrying: int
    stars: Ints

    def columns(self, states: Ints) -> Ints:
        """Return the column or `*` of each state."""
        columns: Ints = states.copy()
        carrying = states >= self.first_carrying
        columns[carrying] = self.stars[states[carrying] - self.first_carrying]
        return columns

    def between_columns(self) -> WalkResult:
        """Return this reach with each state replaced by its column."""
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

    The walk ends one step beyond the depth limit. Of the columns of a `*`, the result lists those
    with further edges, and `wanted`.
    """
    walk = ColumnWalk(columns, identities, downstream=downstream, as_of=as_of)
    with borrowed_marks() as visited:
        deepest = UNLIMITED if depth is None else depth
        start = walk.first_levels(root, visited, deepest)
        result = WalkBuilder(start, visited, depth)
        level, frontier = start.level, start.frontier
        if len(frontier):
            frontier = _expand_stars(walk, result, frontier, level, wanted)
        while len(frontier) and level <= deepest:
            level += 1
            edges, near, far = walk.expand(frontier)
            result.add_edges(edges, near, far, level)
            new = result.add_nodes(far, level)
            frontier = _expand_stars(walk, result, new, level, wanted)
        return ColumnReach(result.result(), walk.first_carrying, walk.stars)


def _expand_stars(
    walk: ColumnWalk, result: WalkBuilder, new: Ints, level: int, wanted: int
) -> Ints:
    """Add the columns of datasets whose `*` was reached."""
    near, far = walk.inside(new, wanted)
    if not len(near):
        return new
    result.add_edges(np.full(len(near), IMPLIED, np.int32), near, far, level)
    return np.concatenate([new, result.add_nodes(far, level)])


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
        self._near = (flow.source if downstream else flow.target).values
        self._far = (flow.target if downstream else flow.source).values
        # States with a field, numbered after the columns: their `*` and their field.
        self.first_carrying = columns.size
        self._carrying: dict[tuple[int, int], int] = {}
        self._stars: Vector[np.int32] = Vector.empty(np.int32)
        self._carried: Vector[np.int32] = Vector.empty(np.int32)

    def first_levels(self, root: int, visited: VisitMarks, deepest: int) -> FirstLevels:
        """Walk column by column while that is faster than arrays, and up to the first `*`."""
        if self._as_of != FOREVER:
            return start_at(np.array([root], np.int32))
        if compiled := compilation.walks():
            return self._walk_compiled(root, compiled, visited, deepest)
        if self._identities:
            return start_at(np.array([root], np.int32))
        columns = self._columns
        lookup = EdgeLookup(
            self._rows.one_by_one(),
            self._far.data,
            columns.rank.values.data,
            _NO_RANK,
            columns.star_test(),
        )
        return walk_first_levels(root, lookup, None, deepest)

    def _walk_compiled(
        self, root: int, compiled: ModuleType, visited: VisitMarks, deepest: int
    ) -> FirstLevels:
        columns = self._columns
        *found, next_column, level = compiled.walk_columns(
            root,
            self._rows.arrays(),
            self._far,
            columns.dataset.values,
            columns.starred.values,
            self._identities.arrays()[0],
            visited.begin(columns.size),
            compiled.MANY,
            deepest,
        )
        return FirstLevels._make((*found, NO_INTS, found[0][next_column:], level))

    @property
    def stars(self) -> Ints:
        """The `*` column of each state with a field."""
        return self._stars.values

    def expand(self, states: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the next edges, and for each edge its source state and its target state."""
        ends, owners = self._ends(states)
        edges, at = self._rows.of_each(ends)
        if self._as_of != FOREVER:
            was_claimed = self._columns.known_by(edges, self._as_of)
            edges, at = edges[was_claimed], at[was_claimed]
        near = owners[at]
        return edges, near, self._arrivals(edges, near)

    def inside(self, states: Ints, wanted: int) -> tuple[Ints, Ints]:
        """Return (`*`, column) pairs for the columns of datasets that were reached as a whole."""
        whole = states[states < self.first_carrying]
        whole = whole[self._columns.field[whole] == STAR]
        inside = [self._inside(star, wanted) for star in whole.tolist()]
        near = np.repeat(whole, [len(columns) for columns in inside])
        return near, np.concatenate([NO_INTS, *inside])

    def _inside(self, star: int, wanted: int) -> Ints:
        datasets = self._identities.group(int(self._columns.dataset[star]))
        members = np.concatenate([self._columns.of(dataset) for dataset in datasets])
        members = members[self._columns.field[members] != STAR]
        edges, at = self._rows.of_each(members)
        leads_on = members[at[self._columns.known_by(edges, self._as_of)]]
        listed = np.concatenate([leads_on, members[members == wanted]])
        return np.unique(self._canonical(listed))

    def _ends(self, states: Ints) -> tuple[Ints, Ints]:
        """Return the columns whose edges are those of a state, and for each column that state.

        Beside its own edges, a column has the edges of the `*` of its dataset, and its edges under
        other names of the dataset.
        """
        columns, fields = self._places(states)
        datasets = self._columns.dataset[columns]
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
        datasets = self._columns.dataset[far]
        _, carried = self._places(near)
        copied = self._copies(edges) & (carried != STAR)
        special = np.flatnonzero(copied | self._identities.joined(datasets))
        if not len(special):
            return far
        fields = np.where(copied, carried, self._columns.field[far])
        canonical = self._find_canonical(datasets[special], fields[special])
        arrived: Ints = far.copy()
        arrived[special] = canonical
        unknown = special[canonical == 0]
        stars = self._canonical(far[unknown])
        arrived[unknown] = self._carry(stars, fields[unknown])
        return arrived

    def _copies(self, edges: Ints) -> Flags:
        """Return which edges copy each field to the field of the same name."""
        columns = self._columns
        flags: Flags = (
            (columns.rank[edges] == IDENTITY)
            & (columns.field[self._near[edges]] == STAR)
            & (columns.field[self._far[edges]] == STAR)
        )
        return flags

    def _carry(self, stars: Ints, fields: Ints) -> Ints:
        """Return the states of a `*` with a field."""
        states = []
        for star, field in zip(stars.tolist(), fields.tolist(), strict=True):
            new = self.first_carrying + len(self._carrying)
            state = self._carrying.setdefault((star, field), new)
            if state == new:
                self._stars = self._stars.extended([star])
                self._carried = self._carried.extended([field])
            states.append(state)
        return np.array(states, np.int32)

    def _places(self, states: Ints) -> tuple[Ints, Ints]:
        """Return the column and the field of each state."""
        carrying = states >= self.first_carrying
        if not carrying.any():
            return states, self._columns.field[states]
        columns = states.copy()
        columns[carrying] = self.stars[states[carrying] - self.first_carrying]
        fields = self._columns.field[columns]
        fields[carrying] = self._carried[states[carrying] - self.first_carrying]
        return columns, fields

    def _canonical(self, columns: Ints) -> Ints:
        """Return the canonical columns, one for all names of their datasets."""
        return self._find_canonical(self._columns.dataset[columns], self._columns.field[columns])

    def _find_canonical(self, datasets: Ints, fields: Ints) -> Ints:
        """Return the canonical column of each field of a dataset, 0 where it is unknown."""
        names, at = self._identities.every_name(datasets)
        columns = self._columns.find_each(names, fields[at])
        canonical = np.full(len(datasets), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(canonical, at[columns > 0], columns[columns > 0])
        return np.where(canonical == np.iinfo(np.int32).max, 0, canonical).astype(np.int32)


def _distinct(columns: Ints, states: Ints) -> tuple[Ints, Ints]:
    keys = np.unique(pairs(states, columns)[columns > 0])
    return (keys & 0xFFFF_FFFF).astype(np.int32), (keys >> 32).astype(np.int32)


def canonical_column(columns: ColumnGraph, identities: Identities, column: int) -> int:
    """Return the canonical column: one id for a column under all names of its dataset."""
    datasets = identities.group(int(columns.dataset[column]))
    field = int(columns.field[column])
    return min(number for d in datasets if (number := columns.find(d, field)) is not None)


def compose_ranks(reach: WalkResult, rank_of_edge: Ints) -> Ints:
    """Return the rank of each reached node along the most direct path from the root.

    The rank of a path is that of its most indirect step. The rank of a node is that of its best
    path.
    """
    far = reach.places(reach.far)
    onward = EdgeRows.of_ends(reach.places(reach.near))
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
