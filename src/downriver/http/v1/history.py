"""How datasets and the graph changed over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.graph_diff import GraphDiff
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import (
    context_of,
    json_response,
    query_flag,
    query_number,
    query_text,
    run_read,
)
from downriver.model.views.history import GraphChanges, KpiHistory, SchemaVersions
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_CHANGES = 5_000


async def get_schema_versions(request: Request) -> Response:
    """Return the schemas of a dataset, in the order in which they were first seen: `?entity=`."""
    history, entity = context_of(request).lineage.history, query_text(request, "entity")
    return json_response(await run_read(request, history.schema_versions, entity))


async def get_changes(request: Request) -> Response:
    """Return the moments at which the graph changed: `?entity=&since=&limit=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.history.changes,
        query.get("entity"),
        since=query.get("since"),
        limit=query_number(request, "limit", 200, _MOST_CHANGES) or 0,
    )
    return json_response(answer)


async def get_diff(request: Request) -> Response:
    """Return what differs in the graph between two moments: `?from=&to=`."""
    compare, end = context_of(request).lineage.diff, request.query_params.get("to")
    return json_response(await run_read(request, compare, query_text(request, "from"), end))


async def get_kpi_history(request: Request) -> Response:
    """Return KPIs at evenly spaced moments: `?since=&points=&certified=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.govern.kpi_history,
        since=request.query_params.get("since"),
        points=query_number(request, "points", 30, _MOST_CHANGES) or 0,
        certified=query_flag(request, "certified"),
    )
    return json_response(answer)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/schema-versions",
        get_schema_versions,
        KeyRole.READER,
        answers(SchemaVersions, *NAMED),
        query=("entity",),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/changes",
        get_changes,
        KeyRole.READER,
        answers(GraphChanges, *NAMED),
        query=("entity", "since", "limit"),
        optional=("entity",),
    ),
    Endpoint(
        "GET",
        "/v1/diff",
        get_diff,
        KeyRole.READER,
        answers(GraphDiff, 400),
        query=("from", "to"),
    ),
    Endpoint(
        "GET",
        "/v1/kpis/history",
        get_kpi_history,
        KeyRole.READER,
        answers(KpiHistory, 400),
        query=("since", "points", "certified"),
        whole_store=True,
    ),
)
