"""Our own API: `/v1/*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from downriver.http.context import context_of, json_response, query_number, query_text
from downriver.service import DEFAULT_LIMIT

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_DEEPEST = 10_000
_MOST_NODES = 100_000


async def get_trace(request: Request) -> Response:
    """Trace a dataset, job or column: `?entity=&direction=&depth=&as_of=&limit=`."""
    entity = query_text(request, "entity")
    depth = query_number(request, "depth", None, _DEEPEST)
    limit = query_number(request, "limit", DEFAULT_LIMIT, _MOST_NODES)
    answer = await run_in_threadpool(
        context_of(request).lineage.trace,
        entity,
        request.query_params.get("direction", "downstream"),
        depth=depth,
        as_of=request.query_params.get("as_of"),
        limit=limit or 0,
    )
    return json_response(answer)


async def get_paths(request: Request) -> Response:
    """Find the routes from one entity to another: `?source=&target=&limit=`."""
    limit = query_number(request, "limit", 10, 1000)
    answer = await run_in_threadpool(
        context_of(request).lineage.paths,
        query_text(request, "source"),
        query_text(request, "target"),
        limit=limit or 0,
    )
    return json_response(answer)


async def get_status(request: Request) -> Response:
    """Say what the store holds."""
    return json_response(await run_in_threadpool(context_of(request).lineage.status))
