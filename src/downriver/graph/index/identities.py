"""Several names for one dataset: the rules that join dataset ids into one node.

These are symlinks, renames, recorded statements, and spellings of one name. The
result depends on the facts alone, not on the order in which the names arrive.
"""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.edges import EDGE_COLUMNS, Edges, Table
from downriver.graph.index.sorted_keys import pairs
from downriver.graph.index.vectors import SMALLEST_FOLD, Flags, Ints, Longs, Times
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader


class DisplayName(NamedTuple):
    """The name that answers show for a node, and its other names."""

    id: NodeId
    aliases: tuple[NodeId, ...]


class Statement(NamedTuple):
    """A person's latest statement about two names, and when it was made."""

    one: int
    other: int
    same: bool
    at: int


class Identities:
    """Groups of node ids that are one node. The smallest id of a group represents it in the graph.

    Immutable: loading more names returns a new object.
    """

    def __init__(
        self,
        names: Edges,
        facet_at: Times,
        rings: _Rings,
        spelled_alike: Mapping[int, int] | None = None,
        naming: object | None = None,
    ) -> None:
        self._names = names  # ALIAS, RENAMED, SAME and DIFFERENT
        self._facet_at = facet_at  # by dataset: the time of its last symlinks facet
        self._rings = rings
        self._spelled_alike = spelled_alike or {}  # id -> an id that certainly is the same dataset
        # The same object in identities that show every node under the same names.
        self.naming = naming or object()
        self._statements: list[Statement] | None = None

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> Identities:
        """Return identities in which every node has one name."""
        none = np.zeros(1, np.int32)
        return cls(Edges.empty(smallest_fold), Times.empty(), _Rings(none, none))

    def __bool__(self) -> bool:
        """Return whether any node has several names."""
        return len(self._names) > 0 or len(self._spelled_alike) > 0

    def arrays(self) -> tuple[Ints, Ints]:
        """Return the smallest and the next id of each node's group; 0 where it has one name."""
        return self._rings.smallest, self._rings.next

    def canonical(self, node: int) -> int:
        """Return the id that stands for a node in the graph."""
        return self._rings.canonical(node)

    def canonicals(self, nodes: Ints) -> Ints:
        """Return the ids that stand for many nodes."""
        if not self:
            return nodes
        smallest = self._smallest_of(nodes)
        return np.where(smallest > 0, smallest, nodes)

    def joined(self, nodes: Ints) -> Flags:
        """Return which nodes have several names."""
        flags: Flags = self._smallest_of(nodes) > 0
        return flags

    def _smallest_of(self, nodes: Ints) -> Ints:
        # An id past the end was never joined to another. 0 is no id.
        smallest = self._rings.smallest
        return smallest[np.where(nodes < len(smallest), nodes, 0)]

    def group(self, node: int) -> list[int]:
        """Return all ids of a node, the smallest first."""
        return sorted(self._rings.members(node))

    def every_name(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return all ids of these nodes, and for each id the position of its node in `nodes`."""
        places = np.arange(len(nodes))
        if not self:
            return nodes, places
        at = np.flatnonzero(self.joined(nodes))
        names, of_nodes, here = [nodes], [places], nodes[at]
        # All rings at once, a step each time: few nodes have more than two names.
        following = self._rings.next[here]
        while len(at):
            other = following != here
            at, here, following = at[other], here[other], following[other]
            names.append(following)
            of_nodes.append(at)
            following = self._rings.next[following]
        return np.concatenate(names), np.concatenate(of_nodes)

    def of_any_name(self, flags: Flags) -> Flags:
        """Return flags by id. If one id of a node has the flag, all its ids get it."""
        smallest = self._rings.smallest
        joined = np.flatnonzero(smallest)
        spread = np.zeros(max(len(flags), len(smallest)), np.bool_)
        spread[: len(flags)] = flags
        flagged = np.zeros(len(spread), np.bool_)
        flagged[smallest[joined[spread[joined]]]] = True
        spread[joined] = flagged[smallest[joined]]
        return spread

    def loaded(self, table: Table) -> Identities:
        """Return identities with new and changed alias and rename edges."""
        if not len(table):
            return self
        sources = np.unique(table["source"]).astype(np.int32)
        before = self._joining(sources)
        names = self._names.merged(table)[0].indexed()
        facets = _latest_facets(self._facet_at, table)
        now = Identities(names, facets, self._rings, self._spelled_alike, self.naming)
        after = now._joining(sources)
        parted, joined = np.setdiff1d(before, after), np.setdiff1d(after, before)
        if len(parted) or len(joined) or EdgeKind.RENAMED in table["kind"]:
            now.naming = object()
        if len(parted) or len(joined):
            ends = (end for edge in parted.tolist() for end in now._ends(edge))
            now._rings = now._joined_again(ends, map(now._ends, joined.tolist()))
        return now

    def at(self, moment: int) -> Identities:
        """Return the identities that the facts seen until a moment lead to.

        A fact that was seen before and after the moment counts as valid in between.
        """
        if (self._names.last_at.values <= moment).all():
            return self
        names, facets = self._names_at(moment)
        past = Identities(names, facets, self._rings, self._spelled_alike)
        old, new = self._joined_pairs(), past._joined_pairs()
        changed = self._names.kind.values[self._names.last_at.values > moment] != EdgeKind.ALIAS
        if np.array_equal(old, new) and not changed.any():
            return self
        parted, joined = np.setdiff1d(old, new), np.setdiff1d(new, old)
        ends = np.concatenate([parted >> 32, parted & 0xFFFFFFFF]).tolist()
        past._rings = past._joined_again(
            ends, zip((joined >> 32).tolist(), (joined & 0xFFFFFFFF).tolist(), strict=True)
        )
        return past

    def _names_at(self, moment: int) -> tuple[Edges, Times]:
        """Return the edges between names that were seen until a moment, and the times of facets.

        The catalog has the first and the last time of a fact. Of a fact that was also seen later,
        the first is the only one that is known to be before the moment. Its other times are
        unknown, so an alias then counts as part of the latest symlinks facet before the moment.
        """
        names = self._names
        edges = np.flatnonzero(names.first_at.values <= moment)
        table = np.zeros(len(edges), EDGE_COLUMNS)
        table["id"], table["kind"] = names.id[edges], names.kind[edges]
        table["source"], table["target"] = names.ends.source[edges], names.ends.target[edges]
        table["via"] = names.via[edges]
        table["first_at"], table["last_at"] = names.first_at.of(edges), names.last_at.of(edges)
        later = table["last_at"] > moment
        table["last_at"][later] = table["first_at"][later]
        facets = _latest_facets(Times.empty(), table)
        continued = later & (table["kind"] == EdgeKind.ALIAS)
        table["last_at"][continued] = facets.of(table["source"][continued])
        return Edges.empty().merged(table)[0].indexed(), facets

    def _joined_pairs(self) -> Longs:
        """Return every pair of names that an edge joins now, as sorted keys."""
        ends = self._names.ends
        edges = self._joining(np.unique(ends.source.values).astype(np.int32))
        keys: Longs = np.unique(pairs(ends.source[edges], ends.target[edges]))
        return keys

    def spelled_alike(self, certain: Mapping[int, int]) -> Identities:
        """Return identities in which each id of `certain` is the same dataset as its value."""
        allowed = self._without_different(certain)
        if allowed == self._spelled_alike:
            return self
        old, new = self._spelled_alike.items(), allowed.items()
        now = Identities(self._names, self._facet_at, self._rings, allowed)
        now._rings = now._joined_again((end for pair in old - new for end in pair), new - old)
        return now

    def statements(self) -> list[Statement]:
        """Return the latest recorded statement about each pair of names."""
        if self._statements is None:
            self._statements = self._list_statements()
        return self._statements

    def _list_statements(self) -> list[Statement]:
        names, latest = self._names, dict[tuple[int, int], Statement]()
        if not len(names):
            return []
        kinds = names.kind.values
        edges = np.flatnonzero((kinds == EdgeKind.SAME) | (kinds == EdgeKind.DIFFERENT))
        for edge, at in zip(edges.tolist(), names.last_at.of(edges).tolist(), strict=True):
            pair = self._ends(edge)
            statement = Statement(*pair, same=bool(names.kind[edge] == EdgeKind.SAME), at=at)
            latest_statement = latest.get(pair)
            if latest_statement is None or (at, not statement.same) > (
                latest_statement.at,
                not latest_statement.same,
            ):
                latest[pair] = statement
        return list(latest.values())

    def _without_different(self, certain: Mapping[int, int]) -> Mapping[int, int]:
        """Leave out the pairs that a person stated to be different."""
        apart = {frozenset(pair) for *pair, same, _ in self.statements() if not same}
        if not apart:
            return certain
        named = frozenset().union(*apart)
        allowed, groups = dict(certain), defaultdict[int, list[int]](list)
        for node in sorted(certain):
            group = groups[certain[node]] or [certain[node]]
            if node in named and any({node, other} in apart for other in group):
                del allowed[node]
            else:
                group.append(node)
            groups[certain[node]] = group
        return allowed

    def _joining(self, sources: Ints) -> Ints:
        """Return the edges from these datasets that join two names now.

        Of aliases, only those of the latest symlinks facet count: an older one may be about a
        path that was used again. Each facet also has an edge from the dataset to itself, so that a
        facet without other names has a time too.
        """
        names = self._names
        edges = names.ends.leaving.of(sources)
        source, target = names.ends.source[edges], names.ends.target[edges]
        kind = names.kind[edges]
        alias = kind == EdgeKind.ALIAS
        current = ~alias & (kind != EdgeKind.DIFFERENT)
        current[alias] = names.last_at.of(edges[alias]) == self._facet_at.of(source[alias])
        if EdgeKind.SAME in kind:
            stated_pairs = {(one, other) for one, other, same, _ in self.statements() if same}
            for at in np.flatnonzero(kind == EdgeKind.SAME):
                current[at] = (int(source[at]), int(target[at])) in stated_pairs
        joining: Ints = edges[current & (source != target)]
        return joining

    def _joined_again(self, parted: Iterable[int], joined: Iterable[tuple[int, int]]) -> _Rings:
        """Dissolve the groups of `parted`, then join ids that belong together, and `joined`."""
        ends, alike, joined = self._names.ends, self._spelled_alike, list(joined)
        size = max(
            ends.source.values.max(initial=0),
            ends.target.values.max(initial=0),
            max((max(pair) for pair in joined), default=0),
        )
        rings = self._rings.copy(int(size) + 1)
        members = rings.part(parted)
        again = [(node, alike[node]) for node in members.tolist() if node in alike]
        for pair in (*map(self._ends, self._joining(members).tolist()), *again, *joined):
            rings.join(*pair)
        return rings

    def _ends(self, edge: int) -> tuple[int, int]:
        ends = self._names.ends
        return int(ends.source[edge]), int(ends.target[edge])

    # The name to show

    def display_names(
        self,
        nodes: Iterable[int],
        reader: CatalogReader,
        *,
        as_sent: bool = False,
        known: Mapping[int, NodeId] = MappingProxyType({}),
    ) -> dict[int, DisplayName]:
        """Return the name that answers show for each node.

        With `as_sent` it is the name by which events read and write the dataset, else the name
        that their symlinks give, which is the logical one. Names that are `known` are not read.
        """
        wanted = np.fromiter(nodes, np.int32)
        members, at = self.every_name(wanted)
        numbers = members.tolist()
        ids = {number: known[number] for number in numbers if number in known}
        if len(ids) < len(numbers):
            ids |= reader.nodes.by_ids([number for number in numbers if number not in ids])
        several = np.flatnonzero(self.joined(members))
        if not len(several):
            return {node: DisplayName(name, ()) for node, name in ids.items()}
        precedence = self._precedence(members[several], as_sent=as_sent)
        groups: dict[int, list[tuple[tuple[bool, bool, int], str, NodeId]]] = {}
        for place, rank in zip(several.tolist(), precedence, strict=True):
            name = ids[int(members[place])]
            groups.setdefault(int(wanted[at[place]]), []).append((rank, str(name), name))
        names = {node: DisplayName(ids[node], ()) for node in wanted.tolist() if node not in groups}
        for node, group in groups.items():
            (*_, first), *others = sorted(group, key=lambda named: named[:2])
            listed = sorted((other for *_, other in others), key=str)
            names[node] = DisplayName(first, tuple(listed))
        return names

    def _precedence(self, nodes: Ints, *, as_sent: bool) -> list[tuple[bool, bool, int]]:
        """Return a sort key for each name. The name with the smallest key of a node is shown.

        A name in use comes before one that was renamed, a logical name before a physical one (or
        after it, `as_sent`), and the target of the latest rename before others.
        """
        names = self._names
        entering, at_target = names.ends.entering.of_each(nodes)
        away, back = self._renames_away(nodes), self._renames_back(nodes)
        sources = np.unique(names.ends.source[entering])
        current = np.isin(entering, self._joining(sources))
        logical = np.zeros(len(nodes), np.bool_)
        logical[at_target[current & (names.kind[entering] == EdgeKind.ALIAS)]] = True
        late = logical == as_sent
        return list(zip((away > back).tolist(), late.tolist(), (-back).tolist(), strict=True))

    def renamed(self, nodes: Ints) -> Flags:
        """Return which of these names were replaced by another one, and not given again since."""
        flags: Flags = self._renames_away(nodes) > self._renames_back(nodes)
        return flags

    def _renames_away(self, nodes: Ints) -> Longs:
        return self._last_renames(*self._names.ends.leaving.of_each(nodes), len(nodes))

    def _renames_back(self, nodes: Ints) -> Longs:
        return self._last_renames(*self._names.ends.entering.of_each(nodes), len(nodes))

    def _last_renames(self, edges: Ints, at: Longs, count: int) -> Longs:
        """Return for each of several nodes when the last of these edges renamed it, or 0."""
        latest = np.zeros(count, np.int64)
        renames = self._names.kind[edges] == EdgeKind.RENAMED
        np.maximum.at(latest, at[renames], self._names.last_at.of(edges[renames]))
        return latest


def _latest_facets(facet_at: Times, table: Table) -> Times:
    """Return the time of the last symlinks facet by dataset, with those of new alias edges."""
    alias = table[table["kind"] == EdgeKind.ALIAS]
    if not len(alias):
        return facet_at
    sources, places = np.unique(alias["source"], return_inverse=True)
    times = facet_at.grown(int(sources[-1]) + 1)
    latest = times.of(sources)
    np.maximum.at(latest, places, alias["last_at"])
    return times.replaced(sources, latest).settled()


class _Rings:
    """Groups of ids. A group is a ring: each id has the next one and the smallest; 0 if alone."""

    def __init__(self, smallest: Ints, following: Ints) -> None:
        self.smallest = smallest
        self.next = following

    def canonical(self, node: int) -> int:
        is_in_range = node < len(self.smallest)
        return (int(self.smallest[node]) if is_in_range else 0) or node

    def members(self, node: int) -> Iterator[int]:
        yield node
        if node >= len(self.next):
            return
        after = int(self.next[node])
        while after not in (0, node):
            yield after
            after = int(self.next[after])

    # Changing a copy

    def copy(self, size: int) -> _Rings:
        """Return a copy with room for ids below `size`."""
        copies = [np.zeros(max(size, len(self.next)), np.int32) for _ in range(2)]
        for copy, array in zip(copies, (self.smallest, self.next), strict=True):
            copy[: len(array)] = array
        return _Rings(*copies)

    def part(self, nodes: Iterable[int]) -> Ints:
        """Dissolve the groups of these nodes and return their members."""
        members = [member for node in nodes for member in self.members(node)]
        self.smallest[members] = 0
        self.next[members] = 0
        return np.unique(np.array(members, np.int32))

    def join(self, one: int, other: int) -> None:
        """Make one group of two."""
        if self.canonical(one) > self.canonical(other):
            one, other = other, one
        smallest = self.canonical(one)
        if smallest == self.canonical(other):
            return
        self.smallest[[one, *self.members(other)]] = smallest
        after = self.next
        after[one], after[other] = after[other] or other, after[one] or one
