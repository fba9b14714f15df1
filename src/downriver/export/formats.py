"""Every export format in one table, and the part of the graph that is exported."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.export.atlas import render_atlas
from downriver.export.cypher import render_cypher
from downriver.export.datahub import render_datahub
from downriver.export.pictures import render_dot, render_mermaid, render_svg
from downriver.model.answers import Trace, TraceEdge, TraceNode, is_complete
from downriver.model.control_characters import escape_json
from downriver.model.flows import ColumnDerivation
from downriver.model.ids import DatasetId


def render_events(piece: ExportedGraph) -> str:
    """Return the first and last event of each edge, as sent, one on each line.

    A store that ingests these events has the same edges with the same evidence.
    """
    edges = piece.trace.edges
    digests = [digest for edge in edges for digest in (edge.first_event, edge.last_event)]
    events = [piece.find_event(digest) for digest in dict.fromkeys(digests)]
    return "".join(_one_line(event) + "\n" for event in events)


def _one_line(event: bytes) -> str:
    """Return an event without the line breaks between its tokens. JSON texts contain none."""
    return " ".join(event.decode("utf-8").splitlines())


COLUMNS = (
    "source", "target", "kind", "type", "subtype", "job", "status", "change", "confidence",
    "masking", "description", "first_seen", "last_seen", "first_event", "last_event",
)  # fmt: skip


def render_csv(piece: ExportedGraph) -> str:
    """Return a row for each edge; RFC 4180, with a heading."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow(COLUMNS)
    for edge in piece.trace.edges:
        rows.writerow([safe_cell(getattr(edge, name)) for name in COLUMNS])
    return text.getvalue()


_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(value: object) -> str:
    """Return a value as text that spreadsheets do not read as a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULAS) else text


def render_json(piece: ExportedGraph) -> str:
    """Return a trace as indented JSON."""
    text = msgspec.json.format(msgspec.json.encode(piece.trace), indent=2).decode()
    return escape_json(text) + "\n"


FORMATS: dict[str, Callable[[ExportedGraph], str]] = {
    "mermaid": lambda piece: render_mermaid(piece.trace),
    "dot": lambda piece: render_dot(piece.trace),
    "svg": lambda piece: render_svg(piece.trace),
    "json": render_json,
    "csv": render_csv,
    "openlineage": render_events,
    "cypher": render_cypher,
    "datahub": render_datahub,
    "atlas": render_atlas,
}


def render(piece: ExportedGraph, output_format: str) -> str:
    """Return a part of the graph in a format. An error lists all formats."""
    renderer = FORMATS.get(output_format.strip().lower())
    if renderer is None:
        format_names = ", ".join(FORMATS)
        raise InvalidRequestError("format", f"{output_format!r} is not one of {format_names}")
    return renderer(piece)


class DerivedColumn(NamedTuple):
    """A column, its transformation, and its source columns."""

    field: str
    derivation: ColumnDerivation
    sources: list[tuple[DatasetId, str]]


class ExportedGraph(NamedTuple):
    """A trace; `find_event` returns an event of the log, `columns_of` the derivations of columns.

    `types` has the asset type of each dataset and job by its id.
    """

    trace: Trace
    find_event: Callable[[str], bytes]
    columns_of: Callable[[TraceNode], list[DerivedColumn]]
    types: Mapping[str, str]

    def upstreams(self) -> dict[str, list[TraceEdge]]:
        """Return for each dataset the edges from its upstream datasets, leaving out jobs."""
        into_jobs: defaultdict[str, list[TraceEdge]] = defaultdict(list)
        for edge in self.trace.edges:
            if edge.kind == "reads":
                into_jobs[edge.target].append(edge)
        upstreams: defaultdict[str, dict[str, TraceEdge]] = defaultdict(dict)
        for edge in self.trace.edges:
            if edge.kind == "derives" and edge.type is None:
                upstreams[edge.target].setdefault(edge.source, edge)
            elif edge.kind == "writes":
                for read in into_jobs[edge.source]:
                    if read.source != edge.target:
                        upstreams[edge.target].setdefault(read.source, read)
        return {target: list(edges.values()) for target, edges in sorted(upstreams.items())}


def compare_traces(before: Trace, after: Trace) -> Trace:
    """Return the union of two traces, with new edges marked `added` and old ones `removed`.

    An edge counts as removed when it becomes stale: later runs of its job did not confirm it.
    """
    old = {_key(edge): edge for edge in before.edges if edge.status == "active"}
    new = {_key(edge): edge for edge in after.edges if edge.status == "active"}
    removed = [edge for key, edge in old.items() if key not in new]
    came = [edge for key, edge in new.items() if key not in old]
    stay = [edge for key, edge in new.items() if key in old]
    edges = [
        *stay,
        *(msgspec.structs.replace(edge, change="added") for edge in came),
        *(msgspec.structs.replace(edge, change="removed") for edge in removed),
    ]
    spots = list({str(s): s for s in (*after.blind_spots, *before.blind_spots)}.values())
    return msgspec.structs.replace(
        after,
        nodes=_nodes(before, after, list(old.values()), list(new.values())),
        edges=sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind)),
        complete=is_complete(spots),
        blind_spots=spots,
    )


def _nodes(
    before: Trace, after: Trace, old: list[TraceEdge], new: list[TraceEdge]
) -> list[TraceNode]:
    """Return every node once. A node with edges at only one moment is marked added or removed."""
    root = after.root.id
    was = {root, *(end for edge in old for end in (edge.source, edge.target))}
    remains = {root, *(end for edge in new for end in (edge.source, edge.target))}
    nodes_by_id = {node.id: node for node in (*before.nodes, *after.nodes)}
    return [
        _mark_node(node, was=node.id in was, remains=node.id in remains)
        for node in nodes_by_id.values()
        if node.id in was or node.id in remains
    ]


def _mark_node(node: TraceNode, *, was: bool, remains: bool) -> TraceNode:
    if was and remains:
        return node
    return msgspec.structs.replace(node, marks=[*node.marks, "added" if remains else "removed"])


def _key(edge: TraceEdge) -> tuple[str | None, ...]:
    return (edge.source, edge.target, edge.kind, edge.job, edge.type, edge.subtype)
