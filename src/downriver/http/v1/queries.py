"""Questions about the graph: traces, paths, entities, exports, and the status of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import (
    MAX_DEPTH,
    context_of,
    json_response,
    query_flag,
    query_number,
    query_text,
    run_read,
)
from downriver.model.answers import Paths, Trace
from downriver.model.flows import ColumnLineageAnswer, EntityLineage, ExportAnswer, Popular
from downriver.model.views.graph_view import EntityView
from downriver.service import DEFAULT_LIMIT, Status
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MAX_TRACE_NODES = 100_000
_MAX_RELATED = 1_000_000
_MAX_PATHS = 1_000
_MAX_POPULAR = 1_000


async def get_trace(request: Request) -> Response:
    """Trace a dataset, job or column.

    `?entity=&direction=&depth=&as_of=&limit=&readers=&statements=`
    """
    answer = await run_read(
        request,
        context_of(request).lineage.trace,
        query_text(request, "entity"),
        request.query_params.get("direction", "downstream"),
        depth=query_number(request, "depth", None, MAX_DEPTH),
        as_of=request.query_params.get("as_of"),
        limit=query_number(request, "limit", DEFAULT_LIMIT, _MAX_TRACE_NODES) or 0,
        readers=query_flag(request, "readers"),
        statements=query_flag(request, "statements"),
    )
    return json_response(answer)


async def get_paths(request: Request) -> Response:
    """Find the paths from one entity to another: `?source=&target=&limit=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.trace.paths,
        query_text(request, "source"),
        query_text(request, "target"),
        limit=query_number(request, "limit", 10, _MAX_PATHS) or 0,
    )
    return json_response(answer)


async def get_related(request: Request) -> Response:
    """List the upstream and downstream of an entity: `?entity=&direction=&depth=&as_of=&limit=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.entities.related,
        query_text(request, "entity"),
        request.query_params.get("direction", "both"),
        depth=query_number(request, "depth", None, MAX_DEPTH),
        as_of=request.query_params.get("as_of"),
        limit=query_number(request, "limit", DEFAULT_LIMIT, _MAX_RELATED) or 0,
    )
    return json_response(answer)


async def get_entity(request: Request) -> Response:
    """Return the details of one dataset or job: `?entity=&as_of=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.entity,
        query_text(request, "entity"),
        as_of=request.query_params.get("as_of"),
    )
    return json_response(answer)


async def get_popular(request: Request) -> Response:
    """Return the datasets that the most jobs read: `?limit=`."""
    limit = query_number(request, "limit", 10, _MAX_POPULAR) or 0
    return json_response(
        await run_read(request, context_of(request).lineage.entities.most_read, limit)
    )


async def get_column_lineage(request: Request) -> Response:
    """Return the columns that a column derives from: `?dataset=&column=`."""
    derivations = await run_read(
        request,
        context_of(request).lineage.entities.column_lineage,
        query_text(request, "dataset"),
        query_text(request, "column"),
    )
    answer = ColumnLineageAnswer(
        derivations=derivations,
        complete=derivations.complete,
        blind_spots=derivations.blind_spots,
    )
    return json_response(answer)


async def get_export(request: Request) -> Response:
    """Export the graph around `entity`, what `q` selects, or exactly the nodes `ids`."""
    export, query = context_of(request).lineage.export, request.query_params
    if "entity" not in query and ("q" in query or "ids" in query):
        answer = await run_read(
            request,
            export.selection,
            query.get("q"),
            query.get("format", "mermaid"),
            ids=query.getlist("ids"),
            as_of=query.get("as_of"),
            diff=query.get("diff"),
        )
        return json_response(answer)
    answer = await run_read(
        request,
        export,
        query_text(request, "entity"),
        request.query_params.get("format", "mermaid"),
        request.query_params.get("direction", "both"),
        depth=query_number(request, "depth", None, MAX_DEPTH),
        as_of=request.query_params.get("as_of"),
        focus=request.query_params.get("focus"),
        diff=request.query_params.get("diff"),
        readers=query_flag(request, "readers"),
    )
    return json_response(answer)


async def get_status(request: Request) -> Response:
    """Return the kind of the store and how much it holds."""
    status = await run_read(request, context_of(request).lineage.admin.status)
    status.store = "postgresql" if status.store.startswith("postgresql:") else "sqlite"
    return json_response(status)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/trace",
        get_trace,
        KeyRole.READER,
        answers(Trace, *NAMED),
        query=("entity", "direction", "depth", "as_of", "limit", "readers", "statements"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/paths",
        get_paths,
        KeyRole.READER,
        answers(Paths, *NAMED),
        query=("source", "target", "limit"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/related",
        get_related,
        KeyRole.READER,
        answers(EntityLineage, *NAMED),
        query=("entity", "direction", "depth", "as_of", "limit"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/entity",
        get_entity,
        KeyRole.READER,
        answers(EntityView, *NAMED),
        query=("entity", "as_of"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/popular",
        get_popular,
        KeyRole.READER,
        answers(Popular, 400),
        query=("limit",),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/column-lineage",
        get_column_lineage,
        KeyRole.READER,
        answers(ColumnLineageAnswer, *NAMED),
        query=("dataset", "column"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/export",
        get_export,
        KeyRole.READER,
        answers(ExportAnswer, *NAMED),
        query=(
            *("entity", "q", "ids", "format", "direction", "depth", "as_of", "focus", "diff"),
            "readers",
        ),
        optional=("entity", "q"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/status",
        get_status,
        KeyRole.READER,
        answers(Status),
    ),
)
