"""The common parts of traces: questions, snapshots, evidence of edges, blind spots of jobs."""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypedDict

from downriver.graph.index.edges import FOREVER
from downriver.model.answers import BlindSpot, Direction
from downriver.model.facts import EvidenceRank, Span
from downriver.openlineage.facets.custom import parse_blind_spots
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from downriver.graph.index.vectors import Ints
    from downriver.graph.walk.paths import Routes
    from downriver.graph.walk.result import WalkResult
    from downriver.model.answers import TraceEdge, TraceNode

BLIND_SPOTS_SHOWN = 50


class Question(NamedTuple):
    """What to trace: direction, depth, time and limits."""

    direction: Direction = Direction.DOWNSTREAM
    depth: int | None = None
    as_of: int = FOREVER
    limit: int = 1000
    stale_days: int = 30
    readers: bool = True  # list jobs that only read, instead of counting them
    statements: bool = True  # list jobs that report a statement, instead of joining them to a task

    @property
    def until(self) -> int | None:
        """The moment to answer as of, or None for now."""
        return None if self.as_of == FOREVER else self.as_of


class WalkedEdges(NamedTuple):
    """Edges by number, with their source and target nodes in the direction of the data."""

    edges: Ints
    source: Ints
    target: Ints


class GraphView(Protocol):
    """Renders nodes and edges, given by number, for answers."""

    root: int

    def reach(self, *, downstream: bool) -> WalkResult:
        """Return what is upstream or downstream of the root."""

    def routes(self, end: int, limit: int) -> Routes:
        """Return the paths from the root to another node."""

    def join_statements(self, depths: dict[int, int]) -> dict[int, int]:
        """Return the nodes to show, with their depths: tasks in place of their statements."""

    def nodes(self, depths: Mapping[int, int]) -> dict[int, TraceNode]:
        """Return nodes as answers show them, each at its depth."""

    def edges(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges by source, target, kind and job; facts about one edge are merged."""

    def readers(self, steps: WalkedEdges) -> set[int]:
        """Return the jobs at the ends of these edges that only read."""

    def datasets_and_jobs(self, shown: Collection[int]) -> Ints:
        """Return the datasets and jobs of the nodes of this view; for columns, their datasets."""

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """Return the blind spots of the nodes reached in one direction."""


def limit_blind_spots(spots: list[BlindSpot], total: int) -> list[BlindSpot]:
    """Shorten a long list of blind spots of one kind: the last entry counts the others."""
    shown = spots[:BLIND_SPOTS_SHOWN]
    if total > len(shown):
        message = f"and {total - len(shown)} more of this kind"
        shown.append(BlindSpot(kind=shown[0].kind, entity="", message=message))
    return shown


_DAY = 86_400_000_000


class EdgeEvidence(TypedDict):
    """The evidence fields of an edge."""

    status: Literal["active", "stale"]
    confidence: str
    first_seen: str
    last_seen: str
    first_event: str
    last_event: str


_CONFIDENCE = {
    EvidenceRank.OBSERVED: "exact",
    EvidenceRank.DECLARED: "declared",
    EvidenceRank.INFERRED: "inferred",
}


def stale_after(days: int) -> int:
    """Return how long runs of a job must lack an edge, in µs, until the edge is stale."""
    return days * _DAY


def is_stale(span: Span, job_last_seen: int, *, days: int, as_of: int = FOREVER) -> bool:
    """Return whether runs of a job, for days until `as_of`, did not confirm this edge."""
    return min(job_last_seen, as_of) - span.last.at > stale_after(days)


def render_evidence(span: Span, *, stale: bool) -> EdgeEvidence:
    """Return the evidence of an edge seen over a span of time."""
    first_seen, first_event = _moment(span.first.at), _digest(span.first.digest)
    once = span.first == span.last  # the case for most registered flows
    return EdgeEvidence(
        status="stale" if stale else "active",
        confidence=_CONFIDENCE[span.certainty],
        first_seen=first_seen,
        last_seen=first_seen if once else _moment(span.last.at),
        first_event=first_event,
        last_event=first_event if once else _digest(span.last.digest),
    )


# One event shows many edges, so the same moments and digests return in an answer.
_moment = lru_cache(4096)(render_time)
_digest = lru_cache(4096)(bytes.hex)


def merge_spans(spans: Iterable[Span]) -> Span:
    """Return the span that covers all of these."""
    return reduce(Span.merge, spans)


def reported_blind_spots(
    bodies: Mapping[int, bytes], ids_of: Callable[[Collection[int]], Mapping[int, str]]
) -> list[BlindSpot]:
    """Return the blind spots in the facets of jobs, such as SQL that could not be parsed."""
    if not bodies:
        return []
    ids = ids_of(bodies)
    spots = [
        BlindSpot(kind=spot.kind, entity=ids[node], message=_with_line(spot.message, spot.line))
        for node, body in bodies.items()
        for spot in parse_blind_spots(body)
    ]
    spots.sort(key=lambda spot: (spot.entity, spot.kind, spot.message))
    return limit_blind_spots(spots, len(spots))


def _with_line(message: str, line: int) -> str:
    return f"line {line}: {message}" if line else message
