"""Questions about the graph and its governance: traces, entities, KPIs, incidents, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.http.request import (
    MAX_DEPTH,
    context_of,
    json_response,
    query_flag,
    query_number,
    query_text,
    run_read,
)
from downriver.model.flows import ColumnDerivation
from downriver.service import DEFAULT_LIMIT
from downriver.service.limits import DEFAULT_FINDINGS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MAX_TRACE_NODES = 100_000
_MAX_RELATED = 1_000_000
_MAX_PATHS = 1_000
_MAX_POPULAR = 1_000


class ColumnLineageAnswer(msgspec.Struct, kw_only=True):
    """How a column is derived: one entry for each job that writes it."""

    derivations: list[ColumnDerivation]


async def get_trace(request: Request) -> Response:
    """Trace a dataset, job or column: `?entity=&direction=&depth=&as_of=&limit=&readers=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.trace,
        query_text(request, "entity"),
        request.query_params.get("direction", "downstream"),
        depth=query_number(request, "depth", None, MAX_DEPTH),
        as_of=request.query_params.get("as_of"),
        limit=query_number(request, "limit", DEFAULT_LIMIT, _MAX_TRACE_NODES) or 0,
        readers=query_flag(request, "readers"),
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
    """List what feeds an entity and what it feeds: `?entity=&direction=&depth=&as_of=&limit=`."""
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
    """Return the details of one dataset or job: `?entity=`."""
    entity = query_text(request, "entity")
    return json_response(await run_read(request, context_of(request).lineage.entity, entity))


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
    return json_response(ColumnLineageAnswer(derivations=derivations))


async def get_diagnosis(request: Request) -> Response:
    """Trace a metric that looks wrong back to its sources: `?dataset=&column=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.entities.diagnose,
        query_text(request, "dataset"),
        query_text(request, "column"),
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


_MOST_FINDINGS = 10_000


async def get_kpis(request: Request) -> Response:
    """Return the KPIs of the whole graph."""
    return json_response(await run_read(request, context_of(request).lineage.govern.kpis))


async def get_incident(request: Request) -> Response:
    """Report what is wrong with an entity: `?entity=&at=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.govern.incident_report,
        query_text(request, "entity"),
        request.query_params.get("at"),
    )
    return json_response(answer)


async def get_tag(request: Request) -> Response:
    """Return the columns that a tag reaches: `?tag=`. The default is `pii`."""
    tag = request.query_params.get("tag", "pii")
    return json_response(await run_read(request, context_of(request).lineage.govern.tag_reach, tag))


async def get_certified(request: Request) -> Response:
    """Return every certified dataset with the gaps in its upstream lineage."""
    return json_response(
        await run_read(request, context_of(request).lineage.govern.certified_paths)
    )


async def get_drift(request: Request) -> Response:
    """Return the findings of the monitor: `?of=&status=&kind=&severity=&since=&limit=`."""
    query = request.query_params
    status = query.get("status", "open")
    answer = await run_read(
        request,
        context_of(request).lineage.govern.findings,
        status=None if status == "all" else status,
        entity=query.get("of"),
        kind=query.get("kind"),
        severity=query.get("severity"),
        since=query.get("since"),
        limit=query_number(request, "limit", DEFAULT_FINDINGS, _MOST_FINDINGS) or 0,
    )
    return json_response(answer)
