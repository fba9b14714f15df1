"""The OpenLineage collector: `POST /api/v1/lineage` and `/api/v1/lineage/batch`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.responses import Response

from downriver.errors import DownriverError, ForbiddenError, InvalidEventError
from downriver.http.code_requests import ask_about_code
from downriver.http.endpoint import Endpoint, answers
from downriver.http.errors import ErrorBody
from downriver.http.request import context_of, json_response, read_body
from downriver.openlineage import parse_event, split_events
from downriver.service.sql_facets import has_only_sql, infer_datasets
from downriver.store import KeyRole, check_event
from downriver.store.redaction import redactions_in

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.openlineage import Event
    from downriver.service import Lineage


class FailedEvent(msgspec.Struct):
    """An event of a batch that could not be stored."""

    index: int
    reason: str
    retriable: bool


class BatchSummary(msgspec.Struct):
    """How many events of a batch were stored."""

    received: int
    successful: int
    failed: int
    retriable: int
    non_retriable: int


class BatchResult(msgspec.Struct):
    """The answer to a batch with events that could not be stored."""

    status: Literal["success", "partial_success", "failure"]
    summary: BatchSummary
    failed_events: list[FailedEvent]


async def post_event(request: Request) -> Response:
    """Store one event: 201 once it is on disk, also for an event that is already stored."""
    context = context_of(request)
    body = await read_body(request, context.max_body)
    try:
        event = _parse(body)
    except InvalidEventError:
        context.metrics.refused += 1
        raise
    await store_events([event], request)
    return Response(status_code=201)


async def post_batch(request: Request) -> Response:
    """Store a JSON array of events: 204 if all are on disk, else 200 with those that failed."""
    context = context_of(request)
    body = await read_body(request, context.max_body)
    if body.lstrip()[:1] != b"[":
        raise InvalidEventError("", "the body is not a JSON array of events")
    raws = split_events(body)
    scope = context.lineage.session.scope
    events: list[Event] = []
    failed: list[FailedEvent] = []
    for index, raw in enumerate(raws):
        try:
            event = _parse(raw)
            if scope is not None:
                check_event(event, scope)
            events.append(event)
        except (InvalidEventError, ForbiddenError) as exc:
            failed.append(FailedEvent(index, exc.message, False))
            context.metrics.refused += 1
            if isinstance(exc, ForbiddenError):
                context.access.refusals.add(request.scope, "/api/v1/lineage/batch", exc.message)
    await store_events(events, request)
    if not failed:
        return Response(status_code=204)
    summary = BatchSummary(len(raws), len(events), len(failed), 0, len(failed))
    status: Literal["partial_success", "failure"] = "partial_success" if events else "failure"
    return json_response(BatchResult(status, summary, failed))


def _parse(raw: bytes) -> Event:
    """Parse an event. Only the store itself states which entries of its log were redacted."""
    event = parse_event(raw)
    if redactions_in(raw):
        reason = "records a redaction; only an administrator can make one: POST /v1/redact"
        raise InvalidEventError("dataset", reason)
    return event


async def store_events(events: list[Event], request: Request) -> None:
    """Store events, and return once they are on disk."""
    context = context_of(request)
    try:
        futures = context.lineage.session.submit(events)
    except DownriverError:
        context.metrics.refused += len(events)
        raise
    results = await asyncio.gather(
        *(asyncio.wrap_future(future) for future in futures), return_exceptions=True
    )
    failed = sum(isinstance(result, BaseException) for result in results)
    context.metrics.refused += failed
    context.metrics.accepted += len(results) - failed
    for result in results:
        if isinstance(result, DownriverError):
            raise result
        if isinstance(result, BaseException):
            raise RuntimeError("an event could not be stored") from result
    await _infer_datasets(events, request)


async def _infer_datasets(events: list[Event], request: Request) -> None:
    """Read the SQL of events without datasets in a worker. The events themselves are on disk."""
    with_sql = [event for event in events if has_only_sql(event)]
    if with_sql:
        raws = [msgspec.Raw(event.raw) for event in with_sql]
        await ask_about_code(request, infer_from_events, msgspec.json.encode(raws))


def infer_from_events(lineage: Lineage, body: bytes) -> int:
    """Read the SQL of events in a JSON array, and store the inputs and outputs of the jobs."""
    return infer_datasets(lineage.session, map(parse_event, split_events(body)))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/v1/lineage",
        post_event,
        KeyRole.WRITER,
        answers(None, 400, 413, 503, status=201),
        body=dict,
    ),
    Endpoint(
        "POST",
        "/api/v1/lineage/batch",
        post_batch,
        KeyRole.WRITER,
        {200: BatchResult, 204: None, 400: ErrorBody, 413: ErrorBody, 503: ErrorBody},
        body=list,
    ),
)
