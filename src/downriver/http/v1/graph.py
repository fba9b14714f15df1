"""Parts of the graph for a screen: nodes and edges, column edges, runs, events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import (
    MAX_DEPTH,
    context_of,
    json_response,
    query_number,
    query_text,
    read_struct,
    run_read,
)
from downriver.model.flows import ExportAnswer
from downriver.model.views.drawn_view import DrawnView
from downriver.model.views.graph_view import ColumnEdges, Graph, Selection
from downriver.model.views.runs import RunDetails, Runs, StoredEvent
from downriver.service.limits import GRAPH_NODES
from downriver.service.views.graph_view import GraphParts
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_NODES = 10_000
_MOST_DATASETS = 5_000
_MOST_RUNS = 1_000


class ColumnEdgesRequest(msgspec.Struct, kw_only=True):
    """The datasets between which column edges are wanted."""

    datasets: list[str]
    as_of: str | None = None
    diff: str | None = None


async def get_graph(request: Request) -> Response:
    """Return the graph around an entity, or what a selector selects: `?entity=` or `?q=`."""
    query, graph = request.query_params, context_of(request).lineage.graph
    shown: dict[str, Any] = {
        "as_of": query.get("as_of"),
        "diff": query.get("diff"),
        "limit": query_number(request, "limit", GRAPH_NODES, _MOST_NODES) or 0,
        "include": _parts(request),
    }
    if "q" in query and "entity" not in query:
        return json_response(await run_read(request, partial(graph.select, query["q"], **shown)))
    direction = query.get("direction", "both")
    depth = query_number(request, "depth", 1, MAX_DEPTH)
    answer = await run_read(
        request, partial(graph, query_text(request, "entity"), direction, depth=depth, **shown)
    )
    return json_response(answer)


async def get_selection(request: Request) -> Response:
    """Return the ids of the datasets and jobs that a selector selects: `?q=&as_of=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.select,
        query_text(request, "q"),
        as_of=request.query_params.get("as_of"),
    )
    return json_response(answer)


def _parts(request: Request) -> GraphParts:
    names = [name for name in request.query_params.get("include", "").split(",") if name]
    for name in names:
        if name not in GraphParts._fields:
            known = " or ".join(GraphParts._fields)
            raise InvalidRequestError("include", f"{name!r} is not {known}")
    return GraphParts(**dict.fromkeys(names, True))


async def post_column_edges(request: Request) -> Response:
    """Return the column edges between datasets: `{"datasets": […], "as_of": …, "diff": …}`."""
    asked = await read_struct(request, ColumnEdgesRequest)
    if len(asked.datasets) > _MOST_DATASETS:
        raise InvalidRequestError("datasets", f"more than {_MOST_DATASETS}")
    answer = await run_read(
        request,
        context_of(request).lineage.column_edges.among,
        asked.datasets,
        as_of=asked.as_of,
        diff=asked.diff,
    )
    return json_response(answer)


async def post_export(request: Request) -> Response:
    """Draw what a screen shows: the nodes, rows and edges of the body, as `svg` or `mermaid`."""
    shown = await read_struct(request, DrawnView)
    return json_response(await run_read(request, context_of(request).lineage.export.view, shown))


async def get_column_path(request: Request) -> Response:
    """Return every column edge upstream and downstream of a column: `?dataset=&column=&as_of=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.column_edges.path,
        query_text(request, "dataset"),
        query_text(request, "column"),
        as_of=request.query_params.get("as_of"),
    )
    return json_response(answer)


async def get_runs(request: Request) -> Response:
    """List runs, the latest first: `?entity=&state=&before=&limit=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.runs,
        query.get("entity"),
        state=query.get("state"),
        before=query.get("before"),
        limit=query_number(request, "limit", 50, _MOST_RUNS) or 0,
    )
    return json_response(answer)


async def get_run(request: Request) -> Response:
    """Return one run with its facets as sent: `?job=` where several jobs have runs of one id."""
    answer = await run_read(
        request,
        context_of(request).lineage.runs.details,
        request.path_params["id"],
        request.query_params.get("job"),
    )
    return json_response(answer)


async def get_event(request: Request) -> Response:
    """Return an event of the log as it was sent, by its digest."""
    answer = await run_read(
        request, context_of(request).lineage.trace.stored_event, request.path_params["digest"]
    )
    return json_response(answer)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/graph",
        get_graph,
        KeyRole.READER,
        answers(Graph, *NAMED),
        query=("entity", "q", "direction", "depth", "as_of", "diff", "limit", "include"),
        optional=("entity", "q"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/select",
        get_selection,
        KeyRole.READER,
        answers(Selection, 400),
        query=("q", "as_of"),
        of_events=True,
    ),
    Endpoint(
        "POST",
        "/v1/column-edges",
        post_column_edges,
        KeyRole.READER,
        answers(ColumnEdges, *NAMED, 413),
        body=ColumnEdgesRequest,
    ),
    Endpoint(
        "POST",
        "/v1/export",
        post_export,
        KeyRole.READER,
        answers(ExportAnswer, 400, 413),
        body=DrawnView,
    ),
    Endpoint(
        "GET",
        "/v1/column-path",
        get_column_path,
        KeyRole.READER,
        answers(ColumnEdges, *NAMED),
        query=("dataset", "column", "as_of"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/runs",
        get_runs,
        KeyRole.READER,
        answers(Runs, *NAMED),
        query=("entity", "state", "before", "limit"),
        optional=("entity",),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}",
        get_run,
        KeyRole.READER,
        answers(RunDetails, *NAMED),
        query=("job",),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/events/{digest}",
        get_event,
        KeyRole.READER,
        answers(StoredEvent, 400, 404),
        of_events=True,
        whole_store=True,
    ),
)
