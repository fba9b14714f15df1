"""Every format a piece of the graph can be written in, in one table."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from downriver.errors import InvalidRequestError
from downriver.graph.draw import render_dot, render_mermaid, render_svg
from downriver.graph.export.cypher import render_cypher
from downriver.graph.export.datahub import render_datahub
from downriver.graph.export.events import render_events
from downriver.graph.export.piece import Piece
from downriver.graph.export.table import render_csv


def render_json(piece: Piece) -> str:
    """Return a trace as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(piece.trace), indent=2).decode() + "\n"


FORMATS: dict[str, Callable[[Piece], str]] = {
    "mermaid": lambda piece: render_mermaid(piece.trace),
    "dot": lambda piece: render_dot(piece.trace),
    "svg": lambda piece: render_svg(piece.trace),
    "json": render_json,
    "csv": render_csv,
    "openlineage": render_events,
    "cypher": render_cypher,
    "datahub": render_datahub,
}


def render(piece: Piece, output_format: str) -> str:
    """Return a piece of the graph in a format; an unknown one is an error that lists them."""
    renderer = FORMATS.get(output_format.strip().lower())
    if renderer is None:
        wanted = ", ".join(FORMATS)
        raise InvalidRequestError("format", f"{output_format!r} is not one of {wanted}")
    return renderer(piece)
