"""A trace as the OpenLineage events that are the evidence of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from downriver.graph.export.piece import Piece


def render_events(piece: Piece) -> str:
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
