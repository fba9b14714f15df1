"""The whole graph as arrays, for a picture of thousands of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import numpy as np

from downriver.errors import InvalidRequestError
from downriver.graph import FOREVER
from downriver.graph.answers.node_facts import NodeFactsReader, find_stale, mark_tags
from downriver.graph.names.short_names import ShortNames
from downriver.model.answers import Direction
from downriver.model.ids import JobId
from downriver.model.views.search import GraphMap
from downriver.openlineage.facets.description import TAGS, parse_tags
from downriver.openlineage.wire import render_time
from downriver.service.limits import DEFAULT_LIMIT
from downriver.service.trace import parse_question

if TYPE_CHECKING:
    from downriver.graph import CatalogSnapshot, Question
    from downriver.graph.index.vectors import Ints, Longs
    from downriver.model.ids import NodeId
    from downriver.service.session import StoreSession


class _NodeColumns(TypedDict):
    ids: list[str]
    labels: list[str]
    types: list[str]
    marks: list[list[str]]


Grouping = Literal["none", "namespace", "schema"]
_MOST_NODES = 50_000


class MapApi:
    """The whole graph as arrays, or as groups of nodes. Call it."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, group: str = "none", *, as_of: str | None = None) -> GraphMap:
        """Return every node and edge, or their number by namespace or schema."""
        if group not in get_args(Grouping):
            known = ", ".join(get_args(Grouping))
            raise InvalidRequestError("group", f"{group!r} is not one of {known}")
        question = parse_question(Direction.BOTH, None, as_of, DEFAULT_LIMIT)
        with self._session.reading(question.as_of) as view:
            return _MapBuilder(view, question).build(group)  # type: ignore[arg-type]


class _MapBuilder:
    """Nodes and edges of one state of the graph."""

    def __init__(self, view: CatalogSnapshot, question: Question) -> None:
        graph = view.graph.nodes
        self._view = view
        self._question = question
        edges = np.arange(len(graph.flow), dtype=np.int32)
        if question.as_of != FOREVER:
            edges = edges[graph.flow.first_at.of(edges) <= question.as_of]
        source = graph.identities.canonicals(graph.flow.ends.source[edges])
        target = graph.identities.canonicals(graph.flow.ends.target[edges])
        self._pairs = np.unique(np.stack([source, target], axis=1).reshape(-1, 2), axis=0)
        self._nodes = self._list_nodes()

    def _list_nodes(self) -> Ints:
        """Return the canonical numbers of all nodes that had been seen."""
        reader, identities = self._view.reader, self._view.graph.nodes.identities
        numbers = np.array(list(reader.nodes.matching("name", "*")), np.int32)
        if self._question.as_of != FOREVER:
            spans = reader.nodes.spans(numbers.tolist())
            seen = [spans[number].first.at <= self._question.as_of for number in numbers.tolist()]
            numbers = numbers[np.array(seen, np.bool_)]
        nodes: Ints = np.unique(identities.canonicals(numbers)).astype(np.int32)
        return nodes

    def build(self, group: Grouping) -> GraphMap:
        """Return the arrays."""
        nodes = self._nodes
        degrees = np.zeros(int(max(nodes.max(initial=0), self._pairs.max(initial=0))) + 1, np.int64)
        np.add.at(degrees, self._pairs.ravel(), 1)
        shown = nodes
        if len(nodes) > _MOST_NODES and group == "none":
            shown = np.sort(nodes[np.argsort(-degrees[nodes], kind="stable")[:_MOST_NODES]])
        names = {
            number: display.id
            for number, display in self._view.graph.nodes.identities.display_names(
                shown.tolist(), self._view.reader
            ).items()
        }
        groups, group_names = _groups([names[number] for number in shown.tolist()], group)
        places = np.full(len(degrees), -1, np.int64)
        places[shown] = np.arange(len(shown))
        ends = places[self._pairs]
        ends = ends[(ends >= 0).all(axis=1)]
        whole = group == "none"
        return GraphMap(
            group=group,
            total=len(nodes),
            shown=len(shown),
            **self._columns(shown if whole else shown[:0], names),
            groups=groups if whole else [],
            group_names=group_names,
            group_sizes=np.bincount(groups, minlength=len(group_names)).tolist() if groups else [],
            degrees=degrees[shown].tolist() if whole else [],
            edges=ends.ravel().tolist() if whole else [],
            group_edges=[] if whole else _group_edges(np.array(groups, np.int64), ends),
            as_of=None if self._question.as_of == FOREVER else render_time(self._question.as_of),
        )

    def _columns(self, shown: Ints, names: dict[int, NodeId]) -> _NodeColumns:
        ids = {number: names[number] for number in shown.tolist()}
        labels = ShortNames({str(name): name for name in ids.values()})
        reader = NodeFactsReader(self._view.graph, self._view.reader, self._question.as_of)
        types = reader.types(ids)
        marks = self._marks(shown, ids)
        return {
            "ids": [str(name) for name in ids.values()],
            "labels": [labels[str(name)] for name in ids.values()],
            "types": [types[number] for number in ids],
            "marks": [marks[number] for number in ids],
        }

    def _marks(self, shown: Ints, names: dict[int, NodeId]) -> dict[int, list[str]]:
        stale = find_stale(self._view.graph.nodes, shown, self._question)
        tagged = self._view.reader.facets.named(TAGS) if len(shown) else {}
        canonical = self._view.graph.nodes.identities.canonical
        tags: dict[int, set[str]] = {}
        for number, body in tagged.items():
            parsed = parse_tags(body)
            listed = {tag.partition(":")[0] for tag in parsed.whole}
            listed |= {"pii" for some in parsed.by_column.values() if "pii" in some}
            tags.setdefault(canonical(number), set()).update(listed)
        jobs = [number for number, name in names.items() if isinstance(name, JobId)]
        failed = NodeFactsReader(
            self._view.graph, self._view.reader, self._question.as_of
        ).find_failed(jobs)
        return {
            number: [
                *mark_tags(tags.get(number, ())),
                *(["stale"] if number in stale else []),
                *(["failed"] if number in failed else []),
            ]
            for number in names
        }


def _groups(nodes: list[NodeId], group: Grouping) -> tuple[list[int], list[str]]:
    """Return the place of each node's group, and the names of the groups in order."""
    names = [_group_name(node, group) for node in nodes]
    distinct = sorted(set(names))
    places = {name: place for place, name in enumerate(distinct)}
    return [places[name] for name in names], distinct


def _group_name(node: NodeId, group: Grouping) -> str:
    if group != "schema":
        return node.namespace
    folder = node.name.replace("/", ".").rpartition(".")[0]
    return f"{node.namespace}:{node.name[: len(folder)]}" if folder else node.namespace


def _group_edges(groups: Longs, ends: Longs) -> list[list[int]]:
    """Return how many edges lead from one group to another."""
    between = groups[ends]
    between = between[between[:, 0] != between[:, 1]]
    distinct, counts = np.unique(between, axis=0, return_counts=True)
    return [[*pair, count] for pair, count in zip(distinct.tolist(), counts.tolist(), strict=True)]
