"""How the graph is doing: figures, incidents and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from downriver.http.context import context_of, json_response, query_text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def get_kpis(request: Request) -> Response:
    """Return the figures of the whole graph."""
    return json_response(await run_in_threadpool(context_of(request).lineage.kpis))


async def get_incident(request: Request) -> Response:
    """Report on something broken: `?entity=&at=`."""
    answer = await run_in_threadpool(
        context_of(request).lineage.incident_report,
        query_text(request, "entity"),
        request.query_params.get("at"),
    )
    return json_response(answer)


async def get_tag(request: Request) -> Response:
    """Follow a tag along column edges: `?tag=`, `pii` if left out."""
    tag = request.query_params.get("tag", "pii")
    return json_response(await run_in_threadpool(context_of(request).lineage.tag_reach, tag))
