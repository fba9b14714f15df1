"""Events of runs in the order of time, and counts of the last day and week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidRequestError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.parameters import PAGE, ListPage, read_page
from downriver.http.marquez.shapes import EventCounts, IntervalCount, MarquezEvents
from downriver.http.request import context_of, json_response, run_read
from downriver.model.facts import RunState
from downriver.model.ids import NodeKind
from downriver.openlineage.wire import render_time
from downriver.service.catalog.directory import Interval, last_days, last_hours
from downriver.service.govern import parse_moment
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.service import Lineage

_FIRST, _LAST = -(2**62), 2**62


async def get_marquez_events(request: Request) -> Response:
    """Return the events of runs as sent: `?after=&before=&sortDirection=&limit=&offset=`."""
    direction = request.query_params.get("sortDirection", "desc").lower()
    if direction not in ("asc", "desc"):
        raise InvalidRequestError("sortDirection", f"{direction!r} is not asc or desc")
    found = await run_read(
        request,
        _events,
        context_of(request).lineage,
        (_moment(request, "after", _FIRST), _moment(request, "before", _LAST)),
        read_page(request),
        newest_first=direction == "desc",
    )
    return json_response(found)


async def list_marquez_events(request: Request) -> Response:
    """Return the events of runs, the newest first, for older clients: `?limit=&offset=`."""
    return await get_marquez_events(request)


def _moment(request: Request, name: str, default: int) -> int:
    # A client that does not encode the plus of a time zone sends a space.
    text = request.query_params.get(name, "").replace(" ", "+")
    return parse_moment(text, name) if text else default


def _events(
    lineage: Lineage, between: tuple[int, int], page: ListPage, *, newest_first: bool
) -> MarquezEvents:
    with lineage.store.reader() as reader:
        events = reader.activity.events(*between, *page, newest_first=newest_first)
        count = reader.activity.count_events(*between)
    return MarquezEvents([msgspec.Raw(event) for event in events], count)


async def get_marquez_event_counts(request: Request) -> Response:
    """Return the number of events in each hour or day: `?period=DAY|WEEK&timezone=`."""
    return await _respond_with_counts(request, _count_events)


async def get_marquez_job_counts(request: Request) -> Response:
    """Return the number of jobs at the end of each hour or day: `?period=DAY|WEEK&timezone=`."""
    return await _respond_with_counts(request, _count_jobs)


async def get_marquez_dataset_counts(request: Request) -> Response:
    """Return the number of datasets at the end of each hour or day: `?period=&timezone=`."""
    return await _respond_with_counts(request, _count_datasets)


async def get_marquez_source_counts(request: Request) -> Response:
    """Return the number of sources at the end of each hour or day: `?period=&timezone=`."""
    return await _respond_with_counts(request, _count_sources)


async def _respond_with_counts(
    request: Request,
    count: Callable[[Lineage, Sequence[Interval]], list[EventCounts] | list[IntervalCount]],
) -> Response:
    return json_response(
        await run_read(request, count, context_of(request).lineage, _intervals(request))
    )


def _intervals(request: Request) -> list[Interval]:
    period = request.query_params.get("period", "").upper()
    timezone = request.query_params.get("timezone", "")
    if period == "DAY":
        return last_hours()
    if period != "WEEK":
        raise InvalidRequestError("period", f"{period!r} is not DAY or WEEK")
    if not timezone:
        raise InvalidRequestError("timezone", "missing; a week needs a time zone")
    return last_days(timezone)


def _count_events(lineage: Lineage, intervals: Sequence[Interval]) -> list[EventCounts]:
    counts = lineage.directory.count_events(intervals)
    return [
        EventCounts(
            *_times(interval),
            fail=counted.get(RunState.FAIL, 0),
            start=counted.get(RunState.START, 0),
            complete=counted.get(RunState.COMPLETE, 0),
            abort=counted.get(RunState.ABORT, 0),
        )
        for interval, counted in zip(intervals, counts, strict=True)
    ]


def _count_jobs(lineage: Lineage, intervals: Sequence[Interval]) -> list[IntervalCount]:
    return _counts(intervals, lineage.directory.count_nodes(NodeKind.JOB, intervals))


def _count_datasets(lineage: Lineage, intervals: Sequence[Interval]) -> list[IntervalCount]:
    return _counts(intervals, lineage.directory.count_nodes(NodeKind.DATASET, intervals))


def _count_sources(lineage: Lineage, intervals: Sequence[Interval]) -> list[IntervalCount]:
    return _counts(intervals, lineage.directory.count_sources(intervals))


def _counts(intervals: Sequence[Interval], counts: list[int]) -> list[IntervalCount]:
    return [
        IntervalCount(*_times(interval), count)
        for interval, count in zip(intervals, counts, strict=True)
    ]


def _times(interval: Interval) -> tuple[str, str]:
    return render_time(interval.start), render_time(interval.end)


_PERIOD = ("period", "timezone")

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/events/lineage",
        get_marquez_events,
        KeyRole.READER,
        answers(MarquezEvents, 400),
        query=("after", "before", "sortDirection", *PAGE),
        whole_store=True,
    ),
    Endpoint(
        "GET",
        "/api/v1/events",
        list_marquez_events,
        KeyRole.READER,
        answers(MarquezEvents, 400),
        query=PAGE,
        whole_store=True,
    ),
    *(
        Endpoint(
            "GET",
            f"/api/v1/stats/{asset}",
            handler,
            KeyRole.READER,
            answers(list, 400),
            query=_PERIOD,
            whole_store=asset == "lineage-events",
        )
        for asset, handler in (
            ("lineage-events", get_marquez_event_counts),
            ("jobs", get_marquez_job_counts),
            ("datasets", get_marquez_dataset_counts),
            ("sources", get_marquez_source_counts),
        )
    ),
)
