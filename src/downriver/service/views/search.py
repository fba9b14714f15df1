"""Search over datasets, jobs, columns, tags and owners, with filters and counts."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.errors import InvalidRequestError
from downriver.graph import FOREVER
from downriver.graph.index.labels import NodeLabels, label_pattern
from downriver.graph.names.entity_ids import entity_id
from downriver.graph.names.short_names import ShortNames
from downriver.model.flows import EntitySummary
from downriver.model.ids import DEFAULT_NAMESPACE, ColumnId, DatasetId, JobId
from downriver.model.views.search import SearchFacets, SearchHit, SearchPage
from downriver.service.entities import parse_cursor
from downriver.service.trace import parse_as_of
from downriver.store.access.restriction import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.graph import CatalogSnapshot
    from downriver.graph.index.column_graph import ColumnGraph
    from downriver.graph.index.name_search import NameSet
    from downriver.graph.index.search_index import SearchIndex
    from downriver.graph.index.vectors import Flags, Ints
    from downriver.model.ids import NodeId
    from downriver.service.session import StoreSession

_COUNTED = 10_000  # datasets and jobs that are counted and filtered
_FIELDS = 10_000  # column names that are examined
_FIELDS_AT_ONCE = 32
_COLUMNS = 20
_LABELS = 10
_MOST_WORDS = 32  # each word is searched in each name that matches the other words
KINDS = ("dataset", "job", "column", "tag", "owner")


class SearchFilter(NamedTuple):
    """Conditions of a search. None means no condition."""

    kind: str | None = None
    type: str | None = None
    namespace: str | None = None
    tag: str | None = None
    owner: str | None = None


NO_FILTER = SearchFilter()


class SearchApi:
    """Search over names, columns, tags and owners. Call it to get a page."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        text: str,
        *,
        limit: int = 20,
        cursor: str | None = None,
        where: SearchFilter = NO_FILTER,
        as_of: str | None = None,
    ) -> SearchPage:
        """Find what contains all words of `text` in its name, the shortest names first.

        With `as_of`, find only datasets, jobs and columns of datasets that were known by then.
        Tags and owners are the present ones.
        """
        if limit < 1:
            raise InvalidRequestError("limit", f"{limit} is less than 1")
        if where.kind is not None and where.kind not in KINDS:
            raise InvalidRequestError("kind", f"{where.kind!r} is not one of {', '.join(KINDS)}")
        start, words = parse_cursor(cursor), _split_words(text)
        moment = parse_as_of(as_of)
        with self._session.reading(moment) as view:
            search = _Search(view, self._session.search_index(view), words, where, moment)
            page = search.page(limit, start)
            hits = [search.node_hit(number) for number in page]
            if start == 0:
                hits += [*search.columns(), *search.labels()]
            entities = [search.summary(number) for number in page]
            facets = search.facets()
        after, found = start + len(page), search.found
        is_last = found.is_whole and after >= len(found.ids)
        following = None if is_last or not page else str(after)
        return SearchPage(
            entities=entities,
            hits=hits,
            total=max(len(found.ids), after if page else 0),
            cursor=following,
            next_cursor=following,
            # Entities outside the namespaces of a key are not searched.
            complete=is_last and self._session.scope is None,
            total_is_exact=found.is_whole,
            facets=facets,
            facets_of=len(found.ids),
        )


class _Column(NamedTuple):
    """A column that a search found, and its tags."""

    dataset: int
    field: str
    tags: frozenset[str]


class _Search:
    """One search in one state of the store. It reads only the names that it shows."""

    def __init__(
        self,
        view: CatalogSnapshot,
        index: SearchIndex,
        words: list[str],
        where: SearchFilter,
        as_of: int,
    ) -> None:
        self._view = view
        self._graph = view.graph.nodes
        self._index = index
        self._words = words
        self._where = where
        self._nodes: dict[int, NodeId] = {}
        self._labels: dict[int, NodeLabels] = {}
        self._known = None if as_of == FOREVER else self._known_by(as_of)
        self.found = self._filtered(index.names.match(words, _COUNTED, self._labelled()))

    def _labelled(self) -> Flags | None:
        """Return which datasets and jobs have the tag and the owner. None: all may be found."""
        tag, owner = self._where.tag, self._where.owner
        if tag is None and owner is None:
            return None
        return self._index.labels.allowed(self._graph, tag=tag, owner=owner)

    def _known_by(self, moment: int) -> Flags:
        """Return for each number of a dataset or job whether an event had mentioned it by then."""
        seen = self._view.reader.retirement.first_mentions()
        last = self._index.names.last_id
        return self._flags(
            np.array([n for n, at in seen.items() if at <= moment and n <= last], np.int32)
        )

    def _filtered(self, names: NameSet) -> NameSet:
        where = self._where
        if self._known is not None:
            names = names.where(self._known[names.ids])
        if where.kind is not None:
            number = {"dataset": 0, "job": 1}.get(where.kind, -1)
            names = names.where(names.kinds == number)
        if where.namespace is not None:
            names = names.where(self._fitting_namespaces(where.namespace)[names.namespaces])
        if where.type is not None:
            names = names.where(self._index.labels.of_type(names.ids, self._graph, where.type))
        return self._distinct(names)

    def _distinct(self, found: NameSet) -> NameSet:
        """Return each dataset once, under the first of its names that was found."""
        identities, names = self._graph.identities, self._index.names
        places = np.flatnonzero(identities.joined(found.ids))
        canonical = identities.canonicals(found.ids[places])
        _, inverse, counts = np.unique(canonical, return_inverse=True, return_counts=True)
        # Those of a segment are in order. Few datasets have names in several segments.
        keys = canonical.astype(np.int64) << 8 | found.segments[places]
        firsts_of_segments = np.unique(keys, return_index=True)[1]
        keep = np.ones(len(found.ids), np.bool_)
        keep[places] = False
        keep[places[firsts_of_segments]] = True
        repeated = places[(counts[inverse] > 1) & keep[places]]
        _, inverse, counts = np.unique(
            identities.canonicals(found.ids[repeated]), return_inverse=True, return_counts=True
        )
        repeated = repeated[counts[inverse] > 1]
        if not len(repeated):
            return found.where(keep)
        order = names.first(self._flags(found.ids[repeated]), len(repeated))
        firsts: dict[int, int] = {}
        for number in order:
            firsts.setdefault(identities.canonical(number), number)
        keep[repeated] = np.isin(found.ids[repeated], [*firsts.values()])
        return found.where(keep)

    def _flags(self, nodes: Ints) -> Flags:
        flags = np.zeros(self._index.names.last_id + 1, np.bool_)
        flags[nodes] = True
        return flags

    def _fitting_namespaces(self, pattern: str) -> Flags:
        """Return for each number of a namespace whether it matches."""
        return np.array(
            [*map(label_pattern(pattern), list(self._index.names.namespaces))], np.bool_
        )

    def page(self, limit: int, start: int) -> list[int]:
        """Return a page of datasets and jobs in order."""
        names = self._index.names
        if start + limit > _COUNTED and self._where == NO_FILTER and self._known is None:
            # Beyond the counted matches, a dataset may appear again under another name.
            numbers = names.search(self._words, limit, start, 0).ids
        else:
            numbers = names.first(self._flags(self.found.ids), start + limit)[start:]
        # The index may contain nodes that are newer than the view.
        self._nodes = self._view.reader.nodes.by_ids(numbers)
        page = [number for number in numbers if number in self._nodes]
        labels = self._index.labels.of(np.array(page, np.int32), self._graph)
        self._labels = dict(zip(page, labels, strict=True))
        self._short_names = ShortNames({str(node): node for node in self._nodes.values()})
        return page

    def summary(self, number: int) -> EntitySummary:
        """Return the summary of a dataset or job for a list."""
        node = self._nodes[number]
        return EntitySummary(
            entity_id=entity_id(node, DEFAULT_NAMESPACE),
            id=str(node),
            name=node.name,
            kind="job" if isinstance(node, JobId) else "dataset",
            type=self._labels[number].type,
            namespace=node.namespace,
        )

    def node_hit(self, number: int) -> SearchHit:
        """Return a dataset or job as a hit."""
        node, labels = self._nodes[number], self._labels[number]
        return SearchHit(
            id=str(node),
            kind="job" if isinstance(node, JobId) else "dataset",
            name=node.name,
            label=self._short_names[str(node)],
            namespace=node.namespace,
            tags=sorted(labels.tags.whole),
            match=_places(node.name, self._words),
            type=labels.type,
        )

    def columns(self) -> list[SearchHit]:
        """Return columns whose names contain all words, the shortest names first."""
        where = self._where
        if not self._words or where.kind not in (None, "column") or where.owner or where.type:
            return []
        # Twice as many, because a dataset with several names has its columns under each name.
        found = list(islice(self._matching_columns(), 2 * _COLUMNS))
        names = self._graph.identities.display_names(
            {column.dataset for column in found}, self._view.reader
        )
        hits: dict[str, SearchHit] = {}
        for column in found:
            hit = self._column_hit(column, names[column.dataset].id)
            if names[column.dataset].id.namespace != OUTSIDE:  # it stands for a hidden dataset
                hits.setdefault(hit.id, hit)
        return list(hits.values())[:_COLUMNS]

    def _matching_columns(self) -> Iterator[_Column]:
        """Yield columns in order: by the name of the column, then by that of the dataset."""
        where, names, labels = self._where, self._index.names, self._index.labels
        columns = self._view.graph.columns
        allowed = np.ones(names.last_id + 1, np.bool_)
        if self._known is not None:
            allowed &= self._known
        fields = self._index.fields.first_spelled(self._words, _FIELDS)
        if where.namespace is not None:
            allowed &= names.in_namespaces(self._fitting_namespaces(where.namespace), len(allowed))
        if where.tag is not None:
            datasets, tagged = labels.tagged_columns(where.tag)
            allowed[: len(datasets)] &= datasets[: len(allowed)]
            allowed[len(datasets) :] = False
            fields = (named for named in fields if named[1].casefold() in tagged)
        matches = label_pattern(where.tag or "*")
        for field, datasets in _datasets_of_fields(columns, fields, allowed):
            for dataset in names.first(datasets, 2 * _COLUMNS):
                tags = labels.tags_of(dataset).of(field)
                if where.tag is None or any(map(matches, tags)):
                    yield _Column(dataset, field, tags)

    def _column_hit(self, column: _Column, owner: NodeId) -> SearchHit:
        return SearchHit(
            id=str(ColumnId(DatasetId(owner.namespace, owner.name), column.field)),
            kind="column",
            name=column.field,
            label=f"{owner.name.rpartition('.')[2]}.{column.field}",
            namespace=owner.namespace,
            tags=sorted(column.tags),
            match=_places(column.field, self._words),
            dataset=str(owner),
        )

    def labels(self) -> list[SearchHit]:
        """Return tags and owners whose names contain all words, the most used first."""
        where, labels = self._where, self._index.labels
        if not self._words or any((where.type, where.namespace, where.tag, where.owner)):
            return []
        hits = []
        if where.kind in (None, "tag"):
            hits += self._label_hits("tag", labels.tag_counts)
        if where.kind in (None, "owner"):
            hits += self._label_hits("owner", labels.owner_counts)
        return hits

    def _label_hits(self, kind: str, counts: Counter[str]) -> list[SearchHit]:
        matching = [(name, n) for name, n in counts.items() if _contains(name, self._words)]
        matching.sort(key=lambda item: (-item[1], item[0]))
        return [
            SearchHit(
                id=f"{kind}:{name}",
                kind="tag" if kind == "tag" else "owner",
                name=name,
                label=name,
                namespace="",
                tags=[],
                match=_places(name, self._words),
                count=count,
            )
            for name, count in matching[:_LABELS]
        ]

    def facets(self) -> SearchFacets:
        """Count the values of the datasets and jobs that were found."""
        found, namespaces = self.found, list(self._index.names.namespaces)
        labels = self._index.labels.counts(found.ids, self._graph)
        return SearchFacets(
            kind=_counts(_tally(found.kinds, ("dataset", "job").__getitem__)),
            type=_counts(labels.types),
            namespace=_counts(_tally(found.namespaces, namespaces.__getitem__)),
            tag=_counts(labels.tags),
            owner=_counts(labels.owners),
        )


def _datasets_of_fields(
    columns: ColumnGraph, fields: Iterator[tuple[int, str]], allowed: Flags
) -> Iterator[tuple[str, Flags]]:
    """Yield the fields that datasets with a flag have, in order, with flags for these datasets.

    A field is given by a column that has it, which may be newer than the graph.
    """
    known = ((int(columns.field[first]), name) for first, name in fields if first < columns.size)
    while some := dict(islice(known, _FIELDS_AT_ONCE)):
        wanted = np.zeros(columns.field_numbers.size, np.bool_)
        wanted[[*some]] = True
        datasets = np.flatnonzero(wanted[columns.field.values])
        numbers, owners = columns.field[datasets], columns.dataset[datasets]
        for number, name in some.items():
            flags = np.zeros(len(allowed), np.bool_)
            flags[owners[numbers == number]] = True
            yield name, flags & allowed


def _tally(numbers: npt.NDArray[Any], value: Callable[[int], str]) -> Counter[str]:
    distinct, counts = np.unique(numbers, return_counts=True)
    pairs = zip(distinct.tolist(), counts.tolist(), strict=True)
    return Counter({value(number): count for number, count in pairs})


def _counts(values: Counter[str]) -> dict[str, int]:
    """Return the most frequent first, equal counts by name."""
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0])))


def _split_words(text: str) -> list[str]:
    """Return the words of a text, each once, in any letter case."""
    words = list({word.casefold(): word for word in text.split()}.values())
    if len(words) > _MOST_WORDS:
        raise InvalidRequestError(
            "text", f"{len(words)} different words; a search takes at most {_MOST_WORDS}"
        )
    return words


def _contains(name: str, words: list[str]) -> bool:
    return all(word.casefold() in name.casefold() for word in words)


def _places(name: str, words: list[str]) -> list[list[int]]:
    """Return where words occur in a name, in order, without overlaps."""
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    if not pattern:
        return []
    return [list(match.span()) for match in re.finditer(pattern, name, re.IGNORECASE)]
