"""Draw what a screen shows: the same groups, rows, marks and faded parts, and its summary."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from downriver.errors import InvalidRequestError
from downriver.export.pictures.drawing import Drawing, DrawnLine, counted, words_of
from downriver.export.pictures.layout import Place
from downriver.export.pictures.mermaid import draw_mermaid
from downriver.export.pictures.svg import draw_svg
from downriver.model.answers import TraceNode
from downriver.model.ids import ColumnId, DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.views.drawn_view import DrawnColumn, DrawnEdge, DrawnNode, DrawnView

_RENDERERS = {"svg": draw_svg, "mermaid": draw_mermaid}
_MOST_NODES = 10_000
_MOST_EDGES = 50_000
_CERTAIN = ("", "exact", "declared")


def render_view(view: DrawnView) -> str:
    """Return a view as a picture or a diagram. Its ids must be distinct, its edges join its nodes.

    An edge to a column without a row ends at the dataset, as on the screen.
    """
    _check(view)
    return _RENDERERS[view.format](_sketch(view))


def _check(view: DrawnView) -> None:
    for field, given, most in (
        ("nodes", view.nodes, _MOST_NODES),
        ("edges", view.edges, _MOST_EDGES),
    ):
        if len(given) > most:
            raise InvalidRequestError(field, f"more than {most}")
    rows = sum(len(node.columns) for node in view.nodes)
    if rows > _MOST_EDGES:
        raise InvalidRequestError("nodes", f"more than {_MOST_EDGES} columns")
    if not view.nodes:
        raise InvalidRequestError("nodes", "the view is empty")
    ids = {node.id for node in view.nodes}
    if len(ids) < len(view.nodes):
        raise InvalidRequestError("nodes", "two nodes have the same id")
    datasets = [node for node in view.nodes if node.kind == "dataset"]
    if len({(node.namespace, node.name) for node in datasets}) < len(datasets):
        raise InvalidRequestError("nodes", "two datasets have the same name")
    for edge in view.edges:
        for end in (edge.source, edge.target):
            if end not in ids:
                raise InvalidRequestError("edges", f"{end!r} is not one of the nodes")


def _sketch(view: DrawnView) -> Drawing:
    nodes: dict[str, TraceNode] = {}
    captions: dict[str, str] = {}
    for drawn in view.nodes:
        nodes[drawn.id] = _node(drawn)
        captions[drawn.id] = ", ".join(_words_of_node(drawn))
        for column in drawn.columns:
            row = _row(drawn, column)
            nodes[row.id] = row
            captions[row.id] = ", ".join(_words_of_column(column))
    root = nodes.get(view.root or "") or TraceNode(
        id=view.title, kind="dataset", namespace="", name=view.title, depth=0
    )
    return Drawing(
        root=root,
        nodes=nodes,
        lines=_lines(view, nodes),
        note=_note(view),
        blind_spots=sorted(f"{spot.kind}: {spot.message}" for spot in view.blind_spots),
        captions={node_id: caption for node_id, caption in captions.items() if caption},
        faded=frozenset(node.id for node in view.nodes if node.faded),
        summary=", ".join(_summary(view)),
        places={node.id: Place(*node.place) for node in view.nodes if node.place},
    )


def _node(drawn: DrawnNode) -> TraceNode:
    count = f" ({counted(drawn.members, 'node')})" if drawn.kind == "group" else ""
    return TraceNode(
        id=drawn.id,
        kind="job" if drawn.kind == "job" else "dataset",
        namespace=drawn.namespace,
        name=f"{drawn.name}{count}",
        depth=0,
        marks=_marks(drawn.marks, drawn.change),
    )


def _row(drawn: DrawnNode, column: DrawnColumn) -> TraceNode:
    return TraceNode(
        id=_column_id(drawn, column.name),
        kind="column",
        namespace=drawn.namespace,
        name=drawn.name,
        field=column.name,
        depth=0,
        marks=_marks(column.marks, column.change),
    )


def _column_id(drawn: DrawnNode, column: str) -> str:
    return str(ColumnId(DatasetId(drawn.namespace, drawn.name), column))


def _marks(marks: list[str], change: str | None) -> list[str]:
    """Return the marks by the names that drawings know: the mark of a failed job is `broken`."""
    named = ["broken" if mark == "failed" else mark for mark in marks]
    return [*named, *([change] if change else [])]


def _words_of_node(drawn: DrawnNode) -> Iterator[str]:
    """Yield in words what the screen shows of a node by shape and colour."""
    yield from drawn.marks
    if drawn.change:
        yield drawn.change
    yield from (f"{tag} propagates" for tag in drawn.reaching)
    if drawn.blind_spot_count:
        yield counted(drawn.blind_spot_count, "blind spot")
    if drawn.upstream_rest:
        yield f"{drawn.upstream_rest} more upstream"
    if drawn.downstream_rest:
        yield f"{drawn.downstream_rest} more downstream"
    if drawn.column_rest:
        yield f"{counted(drawn.column_rest, 'column')} not shown"


def _words_of_column(column: DrawnColumn) -> Iterator[str]:
    if column.locked:
        yield "locked"
    yield from column.marks
    if column.change:
        yield column.change
    yield from (f"{tag} propagates" for tag in column.reaching)


def _lines(view: DrawnView, nodes: dict[str, TraceNode]) -> list[DrawnLine]:
    by_id = {drawn.id: drawn for drawn in view.nodes}
    alike: defaultdict[tuple[str, str, bool, bool, str, bool], list[DrawnEdge]] = defaultdict(list)
    for edge in view.edges:
        source = _end(by_id[edge.source], edge.source_column, nodes)
        target = _end(by_id[edge.target], edge.target_column, nodes)
        stale, change = edge.status == "stale", edge.change or ""
        key = (source, target, edge.type == "INDIRECT", stale, change, edge.faded)
        alike[key].append(edge)
    return [
        DrawnLine(
            *key[:5],
            label=", ".join(sorted({word for edge in edges for word in _words_of_edge(edge)})),
            evidence=tuple(sorted({_evidence(edge) for edge in edges})),
            faded=key[5],
        )
        for key, edges in sorted(alike.items(), key=lambda item: item[0])
    ]


def _end(drawn: DrawnNode, column: str | None, nodes: dict[str, TraceNode]) -> str:
    row = drawn.id if column is None else _column_id(drawn, column)
    return row if row in nodes else drawn.id


def _words_of_edge(edge: DrawnEdge) -> Iterator[str]:
    yield from words_of(edge)
    if edge.confidence not in _CERTAIN:
        yield edge.confidence
    if edge.members > 1:
        yield counted(edge.members, "edge")


def _evidence(edge: DrawnEdge) -> str:
    what = " ".join(part for part in (edge.kind, edge.type, edge.subtype) if part)
    via = f" by {edge.job}" if edge.job else ""
    return f"{what}{via}" + (f", {edge.confidence}" if edge.confidence else "")


def _note(view: DrawnView) -> str:
    spots = len(view.blind_spots)
    return f"incomplete: {counted(spots, 'blind spot')}" if spots else ""


def _summary(view: DrawnView) -> Iterator[str]:
    """Yield what the summary above a graph says: how much is shown, and of which moment."""
    groups = [node for node in view.nodes if node.kind == "group"]
    single = len(view.nodes) - len(groups)
    yield f"{single} of {max(view.total, single)} shown"
    if groups:
        yield f"{sum(node.members for node in groups)} in {counted(len(groups), 'group')}"
    if view.hidden:
        yield f"{view.hidden} hidden"
    if view.as_of:
        yield f"as of {view.as_of}"
    if view.diff:
        yield f"compared with {view.diff}"
