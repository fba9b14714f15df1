"""Search over datasets, jobs, columns, tags and owners, with filters and counts."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.graph.answers.node_facts import NodeFactsReader
from downriver.graph.names.entity_ids import entity_id
from downriver.graph.names.short_names import ShortNames
from downriver.model.flows import EntitySummary
from downriver.model.ids import DEFAULT_NAMESPACE, ColumnId, DatasetId, JobId
from downriver.model.search import SearchFacets, SearchHit, SearchPage
from downriver.openlineage.facets.description import OWNERSHIP, TAGS, parse_owners, parse_tags
from downriver.service.entities import parse_cursor
from downriver.service.limits import MOST_COUNTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph import CatalogSnapshot
    from downriver.graph.answers.node_facts import NodeFacts
    from downriver.graph.index.name_search import NameSearch
    from downriver.model.ids import NodeId
    from downriver.service.session import StoreSession

_COUNTED = 500  # datasets and jobs whose facets are counted
_FILTERED = 5_000  # datasets and jobs that are looked at when there are filters
_COLUMNS = 20
_LABELS = 10
KINDS = ("dataset", "job", "column", "tag", "owner")


class SearchFilter(NamedTuple):
    """Conditions on what a search finds. None is no condition."""

    kind: str | None = None
    type: str | None = None
    namespace: str | None = None
    tag: str | None = None
    owner: str | None = None

    @property
    def of_facts(self) -> bool:
        """Whether facts of a dataset or job decide, and not its name alone."""
        return any(value is not None for value in self)

    def allows(self, node: NodeId, facts: NodeFacts) -> bool:
        """Return whether a dataset or job satisfies the conditions."""
        kind = "job" if isinstance(node, JobId) else "dataset"
        return (
            _fits(self.kind, [kind])
            and _fits(self.type, [facts.type])
            and _fits(self.namespace, [node.namespace])
            and _fits(self.tag, _all_tags(facts))
            and _fits(self.owner, facts.owners)
        )


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
    ) -> SearchPage:
        """Find what contains all words of `text` in its name, the shortest names first."""
        if limit < 1:
            raise InvalidRequestError("limit", f"{limit} is below one")
        if where.kind is not None and where.kind not in KINDS:
            raise InvalidRequestError("kind", f"{where.kind!r} is not one of {', '.join(KINDS)}")
        start, words = parse_cursor(cursor), text.split()
        with self._session.reading() as view:
            search = _Search(view, self._session.names(view), words, where)
            page, total = search.nodes(limit, start)
            counted = search.counted
            hits = [search.node_hit(number) for number in page]
            if start == 0:
                hits += [*search.columns(), *search.labels()]
            entities = [search.summary(number) for number in page]
        after = start + len(page)
        complete = search.total_is_exact and after >= total
        following = None if complete or not page else str(after)
        return SearchPage(
            entities=entities,
            hits=hits,
            total=total,
            cursor=following,
            next_cursor=following,
            complete=complete,
            total_is_exact=search.total_is_exact,
            facets=search.facets(),
            facets_of=len(counted),
        )


class _Search:
    """One search in one state of the store."""

    def __init__(
        self, view: CatalogSnapshot, names: NameSearch, words: list[str], where: SearchFilter
    ) -> None:
        self._view = view
        self._names = names
        self._words = words
        self._where = where
        most = _FILTERED if where.of_facts else _COUNTED
        matches = names.search(words, most, 0, MOST_COUNTED)
        self._found = self._read(matches.ids, set())
        self._total = matches.total - (len(matches.ids) - len(self._found))
        self.total_is_exact = matches.all_counted and (
            not where.of_facts or matches.total <= _FILTERED
        )
        self._facts = NodeFactsReader(view.graph, view.reader).read(self._found)
        self.counted: dict[int, NodeId] = {
            number: node
            for number, node in self._found.items()
            if not where.of_facts or where.allows(node, self._facts[number])
        }
        self._labels = ShortNames({str(node): node for node in self.counted.values()})

    def nodes(self, limit: int, start: int) -> tuple[list[int], int]:
        """Return a page of datasets and jobs, and how many there are."""
        total = len(self.counted) if self._where.of_facts else self._total
        page = list(self.counted)[start : start + limit]
        if len(page) < limit and not self._where.of_facts and start + len(page) < total:
            shown = set(map(self._canonical, self._found))
            more = self._read(self._names.search(self._words, limit, start, 0).ids, shown)
            new = {number: node for number, node in more.items() if number not in self._facts}
            self._facts |= NodeFactsReader(self._view.graph, self._view.reader).read(new)
            self._found |= new
            page = list(more)
        return page, total

    def _read(self, numbers: list[int], shown: set[int]) -> dict[int, NodeId]:
        """Return nodes in this order, a dataset under the first of its names that matches.

        The index may have some that are newer than the view. `shown` are the canonical numbers of
        nodes to leave out; those that are returned are added to it.
        """
        names = self._view.reader.nodes.by_ids(numbers)
        found: dict[int, NodeId] = {}
        for number in numbers:
            canonical = self._canonical(number)
            if number in names and canonical not in shown:
                shown.add(canonical)
                found[number] = names[number]
        return found

    def _canonical(self, number: int) -> int:
        return self._view.graph.nodes.identities.canonical(number)

    def summary(self, number: int) -> EntitySummary:
        """Return a dataset or job as a list shows it."""
        node = self._found[number]
        return EntitySummary(
            entity_id=entity_id(node, DEFAULT_NAMESPACE),
            id=str(node),
            name=node.name,
            kind="job" if isinstance(node, JobId) else "dataset",
            type=self._facts[number].type,
            namespace=node.namespace,
        )

    def node_hit(self, number: int) -> SearchHit:
        """Return a dataset or job as a hit."""
        node, facts = self._found[number], self._facts[number]
        return SearchHit(
            id=str(node),
            kind="job" if isinstance(node, JobId) else "dataset",
            name=node.name,
            label=self._labels[str(node)],
            namespace=node.namespace,
            tags=sorted(facts.tags.whole),
            match=_places(node.name, self._words),
            type=facts.type,
        )

    def columns(self) -> list[SearchHit]:
        """Return columns whose names contain all words, the shortest names first."""
        where = self._where
        if not self._words or where.kind not in (None, "column") or where.owner or where.type:
            return []
        found = self._view.reader.columns.search(self._words, _COLUMNS * 5)
        names = self._view.graph.nodes.identities.display_names(
            {dataset for dataset, _ in found}, self._view.reader
        )
        tags = self._view.reader.facets.of_each({dataset for dataset, _ in found}, (TAGS,))
        hits = []
        for dataset, field in found:
            owner = names[dataset].id
            by_column = parse_tags(tags.get(dataset, {}).get(TAGS)).by_column
            listed = sorted(by_column.get(field.casefold(), ()))
            if not _fits(where.namespace, [owner.namespace]) or not _fits(where.tag, listed):
                continue
            column = ColumnId(DatasetId(owner.namespace, owner.name), field)
            hits.append(
                SearchHit(
                    id=str(column),
                    kind="column",
                    name=field,
                    label=f"{owner.name.rpartition('.')[2]}.{field}",
                    namespace=owner.namespace,
                    tags=listed,
                    match=_places(field, self._words),
                    dataset=str(owner),
                )
            )
        return hits[:_COLUMNS]

    def labels(self) -> list[SearchHit]:
        """Return tags and owners whose names contain all words, the most used first."""
        where = self._where
        if not self._words or any((where.type, where.namespace, where.tag, where.owner)):
            return []
        hits = []
        if where.kind in (None, "tag"):
            hits += self._label_hits("tag", self._count_tags())
        if where.kind in (None, "owner"):
            hits += self._label_hits("owner", self._count_owners())
        return hits

    def _count_tags(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for body in self._view.reader.facets.named(TAGS).values():
            tags = parse_tags(body)
            counts.update({*tags.whole}.union(*tags.by_column.values()))
        return counts

    def _count_owners(self) -> Counter[str]:
        facets = self._view.reader.facets.named(OWNERSHIP).values()
        return Counter(owner for body in facets for owner in parse_owners(body))

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
        nodes, facts = self.counted, self._facts
        return SearchFacets(
            kind=_counts("job" if isinstance(n, JobId) else "dataset" for n in nodes.values()),
            type=_counts(facts[number].type for number in nodes),
            namespace=_counts(node.namespace for node in nodes.values()),
            tag=_counts(tag for number in nodes for tag in _all_tags(facts[number])),
            owner=_counts(owner for number in nodes for owner in facts[number].owners),
        )


def _all_tags(facts: NodeFacts) -> list[str]:
    return sorted({*facts.tags.whole}.union(*facts.tags.by_column.values()))


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _fits(pattern: str | None, values: Iterable[str]) -> bool:
    if pattern is None:
        return True
    wanted = pattern.casefold()
    return any(fnmatch.fnmatchcase(value.casefold(), wanted) for value in values)


def _contains(name: str, words: list[str]) -> bool:
    return all(word.casefold() in name.casefold() for word in words)


def _places(name: str, words: list[str]) -> list[list[int]]:
    """Return where words occur in a name, in order, without overlaps."""
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    if not pattern:
        return []
    return [list(found.span()) for found in re.finditer(pattern, name, re.IGNORECASE)]
