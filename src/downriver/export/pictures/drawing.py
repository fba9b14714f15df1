"""The common part of every format: the nodes and lines of a trace, with printable names."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from downriver.model.answers import NodeKind, Trace, TraceEdge, TraceNode
from downriver.model.control_characters import BIDIRECTIONAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from downriver.export.pictures.layout import Place
    from downriver.model.views.drawn_view import DrawnEdge

Owner: TypeAlias = tuple[str, str]  # the namespace and name of a dataset
Titles: TypeAlias = dict[Owner, str]
ColumnsByDataset: TypeAlias = dict[Owner, list[TraceNode]]


class DrawnLine(NamedTuple):
    """A line between two nodes: all edges with the same style, with their labels and evidence."""

    source: str
    target: str
    indirect: bool
    stale: bool
    change: str
    label: str
    evidence: tuple[str, ...]
    faded: bool = False

    @property
    def solid(self) -> bool:
        """Whether the line is solid, not dashed or dotted."""
        return not (self.indirect or self.stale)


class Drawing(NamedTuple):
    """A trace made ready to draw, in an order that does not depend on the order of its lists.

    `captions` are words beside the names of nodes, by id. `faded` are the ids of nodes that are not
    on a locked path. `summary` says how much of a graph is drawn. `places` are those of nodes on a
    screen, by id.
    """

    root: TraceNode
    nodes: dict[str, TraceNode]
    lines: list[DrawnLine]
    note: str
    blind_spots: list[str]
    captions: Mapping[str, str] = MappingProxyType({})
    faded: frozenset[str] = frozenset()
    summary: str = ""
    places: Mapping[str, Place] = MappingProxyType({})

    @classmethod
    def of(cls, trace: Trace) -> Drawing:
        """Add nodes that only edges name, join edges that look the same, and sort."""
        nodes = {node.id: node for node in (*trace.nodes, trace.root)}
        for edge in trace.edges:
            for end in (edge.source, edge.target):
                nodes.setdefault(end, _unlisted(end))
        return cls(
            root=trace.root,
            nodes=dict(sorted(nodes.items())),
            lines=_lines(trace.edges),
            note=_note(trace),
            blind_spots=sorted(f"{spot.kind}: {spot.message}" for spot in trace.blind_spots),
        )

    @property
    def alone(self) -> list[TraceNode]:
        """The nodes that are not columns: datasets and jobs."""
        return [node for node in self.nodes.values() if node.kind != "column"]

    @property
    def owned(self) -> dict[Owner, list[TraceNode]]:
        """The columns, by their dataset."""
        return _columns_by_owner(self.nodes.values())

    def text_of(self, node: TraceNode, title: str) -> str:
        """Return a title with the caption of its node."""
        caption = self.captions.get(node.id)
        return f"{title} · {caption}" if caption else title


def _unlisted(node_id: str) -> TraceNode:
    """Return a node for the end of an edge that the trace does not list, so that it is drawn."""
    prefix, _, name = node_id.partition(":")
    kind: NodeKind = "job" if prefix == "job" else "dataset"
    return TraceNode(id=node_id, kind=kind, namespace="", name=name or node_id, depth=0)


def _lines(edges: Iterable[TraceEdge]) -> list[DrawnLine]:
    alike: defaultdict[tuple[str, str, bool, bool, str], list[TraceEdge]] = defaultdict(list)
    for edge in edges:
        indirect, stale = edge.type == "INDIRECT", edge.status == "stale"
        key = (edge.source, edge.target, indirect, stale, edge.change or "")
        alike[key].append(edge)
    return [
        DrawnLine(
            *key,
            label=", ".join(sorted({word for edge in group for word in words_of(edge)})),
            evidence=tuple(sorted({_evidence(edge) for edge in group})),
        )
        for key, group in sorted(alike.items())
    ]


def words_of(edge: TraceEdge | DrawnEdge) -> Iterator[str]:
    """Return the label of an edge."""
    if edge.kind.casefold() not in ("reads", "writes", "derives"):
        yield edge.kind.casefold()
    if edge.subtype and (edge.type, edge.subtype) != ("DIRECT", "IDENTITY"):
        yield edge.subtype
    if edge.masking:
        yield "masked"
    if edge.status == "stale":
        yield "stale"
    if edge.change:
        yield edge.change


def _evidence(edge: TraceEdge) -> str:
    what = " ".join(part for part in (edge.kind, edge.type, edge.subtype) if part)
    via = f" by {edge.job}" if edge.job else ""
    seen = f", last seen {edge.last_seen}" if edge.last_seen else ""
    return f"{what}{via}, {edge.confidence}{seen}"


def _note(trace: Trace) -> str:
    """Return a note on what is missing; empty if the drawing is complete."""
    parts = []
    if not trace.complete:
        parts.append(f"incomplete: {counted(len(trace.blind_spots), 'blind spot')}")
    if trace.omitted_count:
        parts.append(f"{counted(trace.omitted_count, 'node')} not shown")
    return ", ".join(parts)


def counted(number: int, noun: str) -> str:
    """Return a count in words: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# The marks of a node. The first one that applies is shown.
MARKS = ("broken", "removed", "added", "pii", "certified")
_IN_WORDS = frozenset({"pii", "certified"})


def marks_of(node: TraceNode) -> list[str]:
    """Return the marks of a node that drawings show."""
    return [mark for mark in MARKS if mark in node.marks]


def badges_of(node: TraceNode) -> list[str]:
    """Return the marks of a node that drawings also show in words, such as `certified`."""
    return [mark for mark in reversed(MARKS) if mark in node.marks and mark in _IN_WORDS]


def by_system(nodes: Iterable[TraceNode]) -> dict[str, list[TraceNode]]:
    """Return datasets and columns by their system, sorted by the name of the system."""
    groups: defaultdict[str, list[TraceNode]] = defaultdict(list)
    for node in nodes:
        if node.kind != "job":
            groups[node.namespace].append(node)
    return dict(sorted(groups.items()))


def split_columns(nodes: Iterable[TraceNode]) -> tuple[list[TraceNode], ColumnsByDataset]:
    """Return the nodes that are not columns, and the columns of each dataset, sorted by name.

    A dataset that is a node beside its columns comes first among them.
    """
    listed = list(nodes)
    columns = _columns_by_owner(listed)
    others: list[TraceNode] = []
    for node in listed:
        if node.kind == "dataset" and owner_of(node) in columns:
            columns[owner_of(node)].insert(0, node)
        elif node.kind != "column":
            others.append(node)
    return others, columns


def _columns_by_owner(nodes: Iterable[TraceNode]) -> ColumnsByDataset:
    columns: defaultdict[Owner, list[TraceNode]] = defaultdict(list)
    for node in nodes:
        if node.kind == "column":
            columns[owner_of(node)].append(node)
    return dict(sorted(columns.items()))


def owner_of(node: TraceNode) -> Owner:
    """Return the namespace and name of a node; for a column, those of its dataset."""
    return node.namespace, node.name


def title_each(owners: Iterable[Owner]) -> dict[Owner, str]:
    """Return a title for each node, with its namespace only if the name alone is ambiguous."""
    distinct = dict.fromkeys(owners)
    homes = Counter(name for _, name in distinct)
    return {
        (namespace, name): f"{name} ({namespace})" if homes[name] > 1 else name
        for namespace, name in distinct
    }


def field_of(column: TraceNode) -> str:
    """Return the name of a column within its dataset."""
    return column.name if column.field is None else column.field


_UNKNOWN = 0xFFFD
_SURROGATES = range(0xD800, 0xE000)
_PLANES = range(0, 0x110000, 0x10000)
_NONCHARACTERS = (
    *range(0xFDD0, 0xFDF0),
    *(plane + end for plane in _PLANES for end in (0xFFFE, 0xFFFF)),
)
# Characters that not every format allows. Control characters have pictures (a line feed is shown as
# ␊). Characters that reorder the text around them could make two names look equal.
PICTURES = {
    **dict.fromkeys(range(0x80, 0xA0), _UNKNOWN),
    **dict.fromkeys(_SURROGATES, _UNKNOWN),
    **dict.fromkeys(_NONCHARACTERS, _UNKNOWN),
    **dict.fromkeys(BIDIRECTIONAL, _UNKNOWN),
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    0x2028: 0x2424,
    0x2029: 0x2424,
}


def printable(text: str) -> str:
    """Return text that every format allows, with visible characters only."""
    return text.translate(PICTURES) if text.strip() else "(blank)"
