"""What a question is answered with: a view of the graph, as datasets and jobs or as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from downriver.graph.edges import FOREVER
from downriver.model.answers import BlindSpot, Direction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph.adjacency import Ints
    from downriver.graph.paths import Routes
    from downriver.graph.reach import Reach
    from downriver.model.answers import TraceEdge, TraceNode

BLIND_SPOTS_SHOWN = 50


class Question(NamedTuple):
    """What is asked about an entity."""

    direction: Direction = Direction.DOWNSTREAM
    depth: int | None = None
    as_of: int = FOREVER
    limit: int = 1000
    stale_days: int = 30


class Steps(NamedTuple):
    """Edges by number, and the nodes that data takes them from and to."""

    edges: Ints
    source: Ints
    target: Ints


class View(Protocol):
    """Turns numbers into what people read."""

    root: int

    def reach(self, *, downstream: bool) -> Reach:
        """Return what lies on one side of the root."""

    def routes(self, end: int, limit: int) -> Routes:
        """Return the routes from the root to another node."""

    def nodes(self, depths: Mapping[int, int]) -> dict[int, TraceNode]:
        """Return nodes as answers show them, each at its depth."""

    def edges(self, steps: Steps, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges as answers show them; what several facts say of one edge is united."""

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """Name what cannot be seen from nodes reached in one direction."""


def and_more(spots: list[BlindSpot], total: int) -> list[BlindSpot]:
    """Keep an answer readable: past a number of one kind, say only how many more there are."""
    shown = spots[:BLIND_SPOTS_SHOWN]
    if total > len(shown):
        message = f"and {total - len(shown)} more of this kind"
        shown.append(BlindSpot(kind=shown[0].kind, entity="", message=message))
    return shown
