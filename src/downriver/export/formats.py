"""Every export format in one table; the short ones (JSON, CSV, OpenLineage events) are here too."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import msgspec

from downriver.errors import InvalidRequestError
from downriver.export.cypher import render_cypher
from downriver.export.datahub import render_datahub
from downriver.export.exported_graph import ExportedGraph
from downriver.export.pictures import render_dot, render_mermaid, render_svg


def render_events(piece: ExportedGraph) -> str:
    """Return, one a line, the events that showed the edges first and last, as they were sent.

    Another store that takes them in has these edges, with the same evidence.
    """
    edges = piece.trace.edges
    digests = [digest for edge in edges for digest in (edge.first_event, edge.last_event)]
    events = [piece.find_event(digest) for digest in dict.fromkeys(digests)]
    return "".join(_one_line(event) + "\n" for event in events)


def _one_line(event: bytes) -> str:
    """Return an event without the line breaks between its tokens; inside texts there are none."""
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
        rows.writerow([_cell(getattr(edge, name)) for name in COLUMNS])
    return text.getvalue()


_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def _cell(value: object) -> str:
    """Return a value as text that no spreadsheet takes for a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULAS) else text


def render_json(piece: ExportedGraph) -> str:
    """Return a trace as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(piece.trace), indent=2).decode() + "\n"


FORMATS: dict[str, Callable[[ExportedGraph], str]] = {
    "mermaid": lambda piece: render_mermaid(piece.trace),
    "dot": lambda piece: render_dot(piece.trace),
    "svg": lambda piece: render_svg(piece.trace),
    "json": render_json,
    "csv": render_csv,
    "openlineage": render_events,
    "cypher": render_cypher,
    "datahub": render_datahub,
}


def render(piece: ExportedGraph, output_format: str) -> str:
    """Return a piece of the graph in a format; an unknown one is an error that lists them."""
    renderer = FORMATS.get(output_format.strip().lower())
    if renderer is None:
        wanted = ", ".join(FORMATS)
        raise InvalidRequestError("format", f"{output_format!r} is not one of {wanted}")
    return renderer(piece)
