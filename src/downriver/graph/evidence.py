"""What an edge of an answer says of itself: who said so, when, and whether it still holds."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Literal, TypedDict

from downriver.events.wire import render_time
from downriver.graph.edges import FOREVER
from downriver.model.facts import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

_DAY = 86_400_000_000


class Evidence(TypedDict):
    """The fields of an edge that say how it is known."""

    status: Literal["active", "stale"]
    confidence: str
    first_seen: str
    last_seen: str
    first_event: str
    last_event: str


def is_stale(span: Span, job_last_seen: int, *, days: int, as_of: int = FOREVER) -> bool:
    """Tell whether a job has gone on for days, until `as_of`, without showing an edge again."""
    return min(job_last_seen, as_of) - span.last.at > days * _DAY


def render_evidence(span: Span, *, stale: bool) -> Evidence:
    """Return the evidence of an edge seen over a span of time."""
    first_seen, first_event = render_time(span.first.at), span.first.digest.hex()
    once = span.first == span.last  # as most things that people register
    return Evidence(
        status="stale" if stale else "active",
        confidence="exact" if span.observed else "declared",
        first_seen=first_seen,
        last_seen=first_seen if once else render_time(span.last.at),
        first_event=first_event,
        last_event=first_event if once else span.last.digest.hex(),
    )


def merge_spans(spans: Iterable[Span]) -> Span:
    """Return the span that covers all of these."""
    return reduce(Span.merge, spans)
