"""Selectors: short expressions that select datasets and jobs, such as `+orders+2 tag:pii`.

    orders              every dataset or job with this name       stg_*   by a pattern
    +orders  orders+    with everything upstream, downstream      2+orders+1   up to a depth
    @orders             with its downstreams and all that feeds those
    tag:pii  owner:ana  namespace:pg*  type:dashboard  kind:job
    a b                 union         a,b   intersection         a --exclude b   difference

A name with a space, a comma or a plus sign is written in double quotes.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from downriver.errors import InvalidRequestError
from downriver.graph.answers.node_facts import NodeFactsReader
from downriver.graph.index.edges import FOREVER
from downriver.graph.names.resolution import find_all
from downriver.graph.walk.node_walk import reach_from
from downriver.model.ids import JobId
from downriver.openlineage.facets.description import OWNERSHIP, TAGS, parse_owners, parse_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import CatalogSnapshot

Method = Literal["name", "tag", "owner", "namespace", "type", "kind"]
_METHODS = get_args(Method)[1:]
_EXCLUDE = ("exclude", "--exclude")
_TOKEN = re.compile(r'(?:"[^"]*"|[^\s,"])+|,')
_ATOM = re.compile(
    r'(?P<around>@)?(?:(?P<up>\d*)\+)?(?P<body>"[^"]+"|.+?)(?:\+(?P<down>\d*))?', re.DOTALL
)
_LONGEST = 2_000
_WILD = frozenset("*?[")


class Atom(NamedTuple):
    """One criterion, and how far to walk from what it selects.

    A depth of None means no walk. UNLIMITED means no depth limit.
    """

    text: str
    method: Method
    value: str
    upstream: int | None = None
    downstream: int | None = None
    around: bool = False


UNLIMITED = -1


class Selector(NamedTuple):
    """A union of intersections, minus another union of intersections."""

    included: tuple[tuple[Atom, ...], ...]
    excluded: tuple[tuple[Atom, ...], ...] = ()


class SelectedNodes(NamedTuple):
    """The canonical numbers of the selected nodes, and the criteria that match nothing."""

    nodes: Ints
    unknown: list[str]


def parse_selector(text: str) -> Selector:
    """Return the selector that a text means, or raise an error that names the wrong part."""
    if len(text) > _LONGEST:
        raise InvalidRequestError("q", f"longer than {_LONGEST} characters")
    tokens: list[str] = _TOKEN.findall(text)
    if text.count('"') % 2:
        raise InvalidRequestError("q", "a double quote is not closed")
    sides: list[list[str]] = [[]]
    for token in tokens:
        if token in _EXCLUDE:
            sides.append([])
        else:
            sides[-1].append(token)
    included, *excluded = sides
    if not included:
        raise InvalidRequestError("q", "selects nothing: give a name such as orders, or tag:pii")
    if any(not side for side in excluded):
        raise InvalidRequestError("q", "nothing follows exclude")
    return Selector(_parse_union(included), tuple(t for s in excluded for t in _parse_union(s)))


def _parse_union(tokens: list[str]) -> tuple[tuple[Atom, ...], ...]:
    terms: list[list[Atom]] = []
    joins = False
    for token in tokens:
        if token == ",":  # noqa: S105
            if joins or not terms:
                raise InvalidRequestError("q", "a comma must be between two criteria")
            joins = True
        elif joins:
            terms[-1].append(_parse_atom(token))
            joins = False
        else:
            terms.append([_parse_atom(token)])
    if joins:
        raise InvalidRequestError("q", "a comma must be between two criteria")
    return tuple(map(tuple, terms))


def _parse_atom(token: str) -> Atom:
    parts = _ATOM.fullmatch(token)
    if parts is None or not (body := parts["body"].strip('"')).strip("+@"):
        raise InvalidRequestError("q", f"{token!r} has no name")
    if parts["around"] and (parts["up"] is not None or parts["down"] is not None):
        raise InvalidRequestError("q", f"{token!r}: @ and + cannot be combined")
    word, colon, rest = body.partition(":")
    method: Method = "name"
    if colon and word in _METHODS:
        method, body = word, rest.strip('"')  # type: ignore[assignment]
        if not body:
            raise InvalidRequestError("q", f"{token!r}: nothing follows {word}:")
    return Atom(
        token,
        method,
        body,
        _parse_depth(parts["up"]),
        _parse_depth(parts["down"]),
        bool(parts["around"]),
    )


def _parse_depth(text: str | None) -> int | None:
    if text is None:
        return None
    if len(text) > 4:
        raise InvalidRequestError("q", f"the depth {text} is too large")
    return int(text) if text else UNLIMITED


class NodeSelection:
    """Evaluates selectors on one state of the graph, as of a moment."""

    def __init__(self, view: CatalogSnapshot, as_of: int = FOREVER) -> None:
        self._view = view
        self._graph = view.graph.nodes
        self._as_of = as_of
        self._criteria: dict[Method, Callable[[str], Iterable[int]]] = {
            "name": self._find_named,
            "tag": self._tagged,
            "owner": self._owned,
            "namespace": self._in_namespace,
            "type": self._of_type,
            "kind": self._of_kind,
        }

    def select(self, selector: Selector) -> SelectedNodes:
        """Return the nodes that a selector selects."""
        unknown: list[str] = []
        included = self._union(selector.included, unknown)
        excluded = self._union(selector.excluded, unknown)
        nodes = np.array(sorted(included - excluded), np.int32)
        return SelectedNodes(self._seen(nodes), list(dict.fromkeys(unknown)))

    def _union(self, terms: Iterable[tuple[Atom, ...]], unknown: list[str]) -> set[int]:
        union: set[int] = set()
        for atoms in terms:
            sets = [self._atom(atom, unknown) for atom in atoms]
            union |= set.intersection(*sets)
        return union

    def _atom(self, atom: Atom, unknown: list[str]) -> set[int]:
        canonical = self._graph.identities.canonical
        roots = {canonical(node) for node in self._criteria[atom.method](atom.value)}
        if not roots:
            unknown.append(atom.text)
            return roots
        if atom.around:
            below = self._reach(roots, UNLIMITED, downstream=True)
            return self._reach(below, UNLIMITED, downstream=False)
        selected = set(roots)
        if atom.upstream is not None:
            selected |= self._reach(roots, atom.upstream, downstream=False)
        if atom.downstream is not None:
            selected |= self._reach(roots, atom.downstream, downstream=True)
        return selected

    def _reach(self, roots: Iterable[int], depth: int, *, downstream: bool) -> set[int]:
        return reach_from(
            self._graph,
            np.array(sorted(roots), np.int32),
            downstream=downstream,
            depth=None if depth == UNLIMITED else depth,
            as_of=self._as_of,
        )

    def _seen(self, nodes: Ints) -> Ints:
        """Return the nodes that had been seen at the moment."""
        if self._as_of == FOREVER or not len(nodes):
            return nodes
        names, places = self._graph.identities.every_name(nodes)
        spans = self._view.reader.nodes.spans(names.tolist())
        seen = np.zeros(len(nodes), np.bool_)
        for name, place in zip(names.tolist(), places.tolist(), strict=True):
            seen[place] |= spans[name].first.at <= self._as_of
        return nodes[seen]

    # Criteria

    def _find_named(self, text: str) -> Iterator[int]:
        if not _WILD & set(text):
            entities = find_all(text, self._view.reader, self._graph.identities)
            yield from (entity.node for entity in entities)
            return
        for number, node in self._view.reader.nodes.matching("name", text).items():
            names = (node.name, node.name.rpartition(".")[2], node.name.rpartition("/")[2])
            if any(_matches(name, text) for name in names):
                yield number

    def _in_namespace(self, text: str) -> Iterator[int]:
        for number, node in self._view.reader.nodes.matching("namespace", text).items():
            if _matches(node.namespace, text):
                yield number

    def _tagged(self, text: str) -> Iterator[int]:
        """Select entities with a tag, on the entity or on a column.

        `pii` also selects `pii:email`.
        """
        for number, body in self._view.reader.facets.named(TAGS).items():
            tags = parse_tags(body)
            listed = [*tags.whole, *(tag for some in tags.by_column.values() for tag in some)]
            if any(_matches(tag, text) or _matches(tag.partition(":")[0], text) for tag in listed):
                yield number

    def _owned(self, text: str) -> Iterator[int]:
        """Select entities with an owner. `ana` also selects `team:ana`."""
        for number, body in self._view.reader.facets.named(OWNERSHIP).items():
            for owner in parse_owners(body):
                if _matches(owner, text) or _matches(owner.rpartition(":")[2], text):
                    yield number

    def _of_type(self, text: str) -> Iterator[int]:
        nodes = self._view.reader.nodes.matching("name", "*")
        shown = {number: node for number, node in nodes.items() if self._is_canonical(number)}
        facts = NodeFactsReader(self._view.graph, self._view.reader, self._as_of).types(shown)
        yield from (number for number, kind in facts.items() if _matches(kind, text))

    def _of_kind(self, text: str) -> Iterator[int]:
        for number, node in self._view.reader.nodes.matching("name", "*").items():
            if _matches("job" if isinstance(node, JobId) else "dataset", text):
                yield number

    def _is_canonical(self, number: int) -> bool:
        return self._graph.identities.canonical(number) == number


def _matches(text: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(text.casefold(), pattern.casefold())
