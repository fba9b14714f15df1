"""What the makers of events said themselves that they could not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.events.facets import read_blind_spots
from downriver.graph.view import and_more
from downriver.model.answers import BlindSpot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.store import Reader


def stated_blind_spots(reader: Reader, nodes: Iterable[int]) -> list[BlindSpot]:
    """Return the blind spots that jobs carry in a facet, such as SQL that could not be parsed."""
    bodies = reader.blind_spots(nodes)
    names = reader.nodes(bodies)
    spots = [
        BlindSpot(kind=spot.kind, entity=str(names[node]), message=_text(spot.message, spot.line))
        for node, body in bodies.items()
        for spot in read_blind_spots(body)
    ]
    spots.sort(key=lambda spot: (spot.entity, spot.kind, spot.message))
    return and_more(spots, len(spots))


def _text(message: str, line: int) -> str:
    return f"line {line}: {message}" if line else message
