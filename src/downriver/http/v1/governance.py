"""Governance: KPIs, incidents, tags, certified datasets and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from downriver.http.request import context_of, json_response, query_number, query_text
from downriver.service.limits import DEFAULT_FINDINGS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_FINDINGS = 10_000


async def get_kpis(request: Request) -> Response:
    """Return the KPIs of the whole graph."""
    return json_response(await run_in_threadpool(context_of(request).lineage.govern.kpis))


async def get_incident(request: Request) -> Response:
    """Report what is wrong with an entity: `?entity=&at=`."""
    answer = await run_in_threadpool(
        context_of(request).lineage.govern.incident_report,
        query_text(request, "entity"),
        request.query_params.get("at"),
    )
    return json_response(answer)


async def get_tag(request: Request) -> Response:
    """Return the columns that a tag reaches: `?tag=`. The default is `pii`."""
    tag = request.query_params.get("tag", "pii")
    return json_response(await run_in_threadpool(context_of(request).lineage.govern.tag_reach, tag))


async def get_certified(request: Request) -> Response:
    """Return every certified dataset with the gaps in its upstream lineage."""
    return json_response(
        await run_in_threadpool(context_of(request).lineage.govern.certified_paths)
    )


async def get_drift(request: Request) -> Response:
    """Return the findings of the monitor: `?of=&status=&kind=&severity=&since=&limit=`."""
    query = request.query_params
    status = query.get("status", "open")
    answer = await run_in_threadpool(
        context_of(request).lineage.govern.findings,
        status=None if status == "all" else status,
        entity=query.get("of"),
        kind=query.get("kind"),
        severity=query.get("severity"),
        since=query.get("since"),
        limit=query_number(request, "limit", DEFAULT_FINDINGS, _MOST_FINDINGS) or 0,
    )
    return json_response(answer)
