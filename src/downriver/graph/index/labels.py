"""Types, tags and owners of every node, as numbers. Searches show, count and filter by them.

A label is stored as the number of its value, four bytes for each node and kind of label. A node may
have labels under several names. Each question joins them, because names may be joined or separated
at any time.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from downriver.graph.names.assets import dataset_type, declared_type, job_type
from downriver.model.facts import EdgeKind
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.custom import ASSET, parse_asset
from downriver.openlineage.facets.dataset import DATASET_TYPE
from downriver.openlineage.facets.description import OWNERSHIP, TAGS, parse_owners, parse_tags
from downriver.openlineage.facets.job import JOB_TYPE, parse_job_type
from downriver.store import LABEL_FACETS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from downriver.graph.index.node_graph import NodeGraph
    from downriver.graph.index.vectors import Flags, Ints, Longs
    from downriver.store import CatalogReader

T = TypeVar("T", bound="Hashable")

_DBT = "dbt_model"
_NONE: Ints = np.zeros(1, np.int32)


class TagSet(NamedTuple):
    """Tags of a node as a whole, and of its columns by case-folded name."""

    whole: frozenset[str] = frozenset()
    of_columns: frozenset[tuple[str, frozenset[str]]] = frozenset()

    @property
    def every(self) -> frozenset[str]:
        """The tags of the node and of its columns."""
        return self.whole.union(*(of_column for _, of_column in self.of_columns))

    def of(self, column: str) -> frozenset[str]:
        """Return the tags of a column."""
        folded = column.casefold()
        return frozenset().union(*(tags for name, tags in self.of_columns if name == folded))

    def union(self, other: TagSet) -> TagSet:
        """Return the tags of both."""
        return TagSet(self.whole | other.whole, self.of_columns | other.of_columns)


class NodeLabels(NamedTuple):
    """The labels of one node under all its names."""

    type: str
    tags: TagSet
    owners: tuple[str, ...]


class LabelCounts(NamedTuple):
    """How many nodes have each value."""

    types: Counter[str]
    tags: Counter[str]
    owners: Counter[str]


class _Values(Generic[T]):
    """Values and their numbers. 0 is no value. Values are only added.

    `words` returns the words of a value that searches count and show.
    """

    def __init__(self, none: T, words: Callable[[T], Iterable[str]]) -> None:
        self.items: list[T] = [none]
        self._words_of = words
        self._words: list[tuple[str, ...]] = [()]
        self._numbers: dict[T, int] = {none: 0}
        self._adding = threading.Lock()
        self._last_total: tuple[Ints, Counter[str]] = (_NONE, Counter())

    def number(self, value: T) -> int:
        """Return the number of a value, a new one if the value is new."""
        value_number = self._numbers.get(value)
        if value_number is not None:
            return value_number
        with self._adding:
            number = self._numbers.setdefault(value, len(self.items))
            if number == len(self.items):
                self._words.append(tuple(self._words_of(value)))
                self.items.append(value)
            return number

    def total(self, numbers: Ints) -> Counter[str]:
        """Count each word in the values of numbers."""
        counts, words = np.bincount(numbers), self._words
        total = Counter[str]()
        for number in np.flatnonzero(counts).tolist():
            count = int(counts[number])
            for word in words[number]:
                total[word] = total.get(word, 0) + count
        return total

    def total_of_all(self, numbers: Ints) -> Counter[str]:
        """Return the total of the numbers of all nodes. It is kept for the same numbers."""
        counted, total = self._last_total
        if counted is not numbers:
            total = self.total(numbers)
            self._last_total = numbers, total
        return total

    def flags(self, numbers: Ints, is_wanted: Callable[[T], bool]) -> Flags:
        """Return for each number whether its value passes a test. Each value is tested once."""
        wanted = np.bincount(numbers) > 0
        for number in np.flatnonzero(wanted).tolist():
            wanted[number] = is_wanted(self.items[number])
        flags: Flags = wanted[numbers]
        return flags


class _AllValues:
    """The values of every kind of label."""

    def __init__(self) -> None:
        self.types = _Values("", lambda kind: (kind,))
        self.owners = _Values[tuple[str, ...]]((), lambda owners: owners)
        self.tags = _Values(TagSet(), lambda tags: tags.every)

    def numbers(self, facets: Mapping[str, bytes]) -> Iterable[tuple[str, int]]:
        """Yield the number of the value in each facet."""
        for name, body in facets.items():
            if name == ASSET:
                yield name, self.types.number(parse_asset(body).assetType)
            elif name == DATASET_TYPE:
                yield name, self.types.number(declared_type(body))
            elif name == JOB_TYPE:
                yield name, self.types.number(job_type(parse_job_type(body)))
                yield _FROM_DBT, int(parse_job_type(body).integration.upper() == "DBT")
            elif name == OWNERSHIP:
                yield name, self.owners.number(parse_owners(body))
            elif name == TAGS:
                tags = parse_tags(body)
                yield name, self.tags.number(TagSet(tags.whole, frozenset(tags.by_column.items())))


_FROM_DBT = "dbt"  # of a job: whether dbt runs it
_KINDS = (*LABEL_FACETS, _FROM_DBT)


@dataclass(frozen=True)
class Labels:
    """The labels of all nodes at a log entry. Immutable: loading more returns a new object."""

    seq: int = 0
    numbers: Mapping[str, Ints] = field(default_factory=lambda: dict.fromkeys(_KINDS, _NONE))
    of_names: Ints = field(default_factory=lambda: _NONE)  # the type that follows from the name
    values: _AllValues = field(default_factory=_AllValues)

    def loaded(
        self, reader: CatalogReader, new: Iterable[tuple[int, int, str, str]], seq: int
    ) -> Labels:
        """Return the labels at a log entry, given the nodes that are new: id, kind, names."""
        of_names = self._types_of_names(new)
        if seq <= self.seq:
            return self
        changed = reader.changes.labelled(self.seq)
        facets = reader.facets.labels(changed) if changed is None or changed else {}
        nodes = [*facets] if changed is None else [*changed]
        if not nodes:
            return replace(self, seq=seq, of_names=of_names)
        new_numbers = {kind: dict.fromkeys(nodes, 0) for kind in _KINDS}
        for node, bodies in facets.items():
            for kind, number in self.values.numbers(bodies):
                new_numbers[kind][node] = number
        numbers = {kind: _updated(self.numbers[kind], new_numbers[kind]) for kind in _KINDS}
        return replace(self, seq=seq, numbers=numbers, of_names=of_names)

    def _types_of_names(self, new: Iterable[tuple[int, int, str, str]]) -> Ints:
        script = self.values.types.number("script")
        types = {
            node: script
            if kind
            else self.values.types.number(dataset_type(DatasetId(namespace, name)))
            for node, kind, namespace, name in new
        }
        if not types:
            return self.of_names
        of_names = _grown(self.of_names, max(types) + 1)
        of_names[[*types]] = [*types.values()]
        return of_names

    # Questions

    def of(self, nodes: Ints, graph: NodeGraph) -> list[NodeLabels]:
        """Return the labels of each node under all its names."""
        values = self.values
        return [
            NodeLabels(
                values.types.items[kind], values.tags.items[tags], values.owners.items[owned]
            )
            for kind, tags, owned in np.transpose(self._join_names(nodes, graph)).tolist()
        ]

    def counts(self, nodes: Ints, graph: NodeGraph) -> LabelCounts:
        """Count the labels of nodes."""
        types, tags, owners = self._join_names(nodes, graph)
        return LabelCounts(
            self.values.types.total(types),
            self.values.tags.total(tags),
            self.values.owners.total(owners),
        )

    def of_type(self, nodes: Ints, graph: NodeGraph, pattern: str) -> Flags:
        """Return for each node whether its type matches a pattern."""
        types, _, _ = self._join_names(nodes, graph)
        return self.values.types.flags(types, label_pattern(pattern))

    def allowed(self, graph: NodeGraph, *, tag: str | None, owner: str | None) -> Flags:
        """Return for each node whether a label matches a pattern, under any name of the node."""
        flags = np.ones(1, np.bool_)
        if tag is not None:
            matches = label_pattern(tag)
            flags = self.values.tags.flags(
                self.numbers[TAGS], lambda tagged: any(map(matches, tagged.every))
            )
            flags = graph.identities.of_any_name(flags)
        if owner is not None:
            is_owner = label_pattern(owner)
            owned = self.values.owners.flags(
                self.numbers[OWNERSHIP], lambda listed: any(map(is_owner, listed))
            )
            owned = graph.identities.of_any_name(owned)
            size = min(len(flags), len(owned))
            flags = owned if tag is None else flags[:size] & owned[:size]
        return flags

    @property
    def tag_counts(self) -> Counter[str]:
        """Count the nodes with each tag, on the node or on a column."""
        return self.values.tags.total_of_all(self.numbers[TAGS])

    @property
    def owner_counts(self) -> Counter[str]:
        """Count the nodes of each owner."""
        return self.values.owners.total_of_all(self.numbers[OWNERSHIP])

    def tagged_columns(self, pattern: str) -> tuple[Flags, set[str]]:
        """Return for each node whether a column of it has a tag that matches, and their names."""
        matches, columns = label_pattern(pattern), set[str]()

        def is_tagged(tags: TagSet) -> bool:
            tagged = {name for name, listed in tags.of_columns if any(map(matches, listed))}
            columns.update(tagged)
            return bool(tagged)

        return self.values.tags.flags(self.numbers[TAGS], is_tagged), columns

    def tags_of(self, node: int) -> TagSet:
        """Return the tags of one name of a node."""
        numbers = self.numbers[TAGS]
        return self.values.tags.items[int(numbers[node])] if node < len(numbers) else TagSet()

    def _join_names(self, nodes: Ints, graph: NodeGraph) -> tuple[Ints, Ints, Ints]:
        """Return the numbers of type, tags and owners of each node under all its names."""
        names, at = graph.identities.every_name(nodes)
        values, types = self.values, self.values.types
        dbt = np.where(self._written_by_dbt(names, at, graph), types.number(_DBT), 0)
        better = (
            self._merged(ASSET, names, at, types, min),
            dbt,
            self._merged(DATASET_TYPE, names, at, types, min),
            _at(self.numbers[JOB_TYPE], nodes),
        )
        numbers = _at(self.of_names, nodes)
        for of_facets in reversed(better):
            numbers = np.where(of_facets > 0, of_facets, numbers)
        tags = self._merged(TAGS, names, at, values.tags, TagSet.union)
        return numbers, tags, self._merged(OWNERSHIP, names, at, values.owners, _both)

    def _merged(
        self,
        kind: str,
        names: Ints,
        at: Longs,
        values: _Values[T],
        merge: Callable[[T, T], T],
    ) -> Ints:
        """Return the number of a label of each node; several names may have different values."""
        numbers = _at(self.numbers[kind], names)
        count = int(at.max(initial=-1)) + 1
        merged: Ints = numbers[:count].copy()
        others = numbers[count:]
        for place in np.flatnonzero(others).tolist():
            node, number = at[count + place], int(others[place])
            if not merged[node]:
                merged[node] = number
            elif merged[node] != number:
                both = merge(values.items[merged[node]], values.items[number])
                merged[node] = values.number(both)
        return merged

    def _written_by_dbt(self, names: Ints, at: Longs, graph: NodeGraph) -> Flags:
        """Return which nodes are datasets that dbt writes."""
        edges, places = graph.flow.ends.entering.of_each(names)
        jobs = graph.flow.ends.source[edges]
        dbt = (graph.flow.kind[edges] == EdgeKind.WRITES) & (_at(self.numbers[_FROM_DBT], jobs) > 0)
        flags = np.zeros(int(at.max(initial=-1)) + 1, np.bool_)
        flags[at[places[dbt]]] = True
        return flags


def label_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a test for a pattern with `*` and `?`, whatever the case."""
    matches = re.compile(fnmatch.translate(pattern.casefold())).match
    return lru_cache(None)(lambda value: matches(value.casefold()) is not None)


def _both(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*some, *others}))


def _updated(numbers: Ints, changes: Mapping[int, int]) -> Ints:
    """Return the numbers with changes: a copy, unless these are the numbers already."""
    nodes = np.fromiter(changes, np.int32, len(changes))
    values = np.fromiter(changes.values(), np.int32, len(changes))
    if (_at(numbers, nodes) == values).all():
        return numbers
    copy = _grown(numbers, int(nodes.max()) + 1)
    copy[nodes] = values
    return copy


def _grown(numbers: Ints, size: int) -> Ints:
    """Return a copy for at least `size` nodes."""
    copy = np.zeros(max(size, len(numbers)), np.int32)
    copy[: len(numbers)] = numbers
    return copy


def _at(numbers: Ints, nodes: Ints) -> Ints:
    """Return the number of each node, 0 for nodes past the end."""
    return numbers[np.where(nodes < len(numbers), nodes, 0)]
