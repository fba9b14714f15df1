"""How the graph is doing: figures, incidents and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from downriver.http.request import context_of, json_response, query_number, query_text
from downriver.service.govern import DEFAULT_FINDINGS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_FINDINGS = 10_000


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


async def get_certified(request: Request) -> Response:
    """Return every certified dataset with what is not known of all that feeds it."""
    return json_response(await run_in_threadpool(context_of(request).lineage.certified_paths))


async def get_drift(request: Request) -> Response:
    """Return what the monitor found: `?of=&status=&kind=&severity=&since=&limit=`."""
    given = request.query_params
    status = given.get("status", "open")
    answer = await run_in_threadpool(
        context_of(request).lineage.findings,
        status=None if status == "all" else status,
        entity=given.get("of"),
        kind=given.get("kind"),
        severity=given.get("severity"),
        since=given.get("since"),
        limit=query_number(request, "limit", DEFAULT_FINDINGS, _MOST_FINDINGS) or 0,
    )
    return json_response(answer)
