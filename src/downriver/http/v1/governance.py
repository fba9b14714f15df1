"""Trust in the data: KPIs, incidents, tags, certified paths, findings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from downriver.errors import InvalidRequestError
from downriver.govern.kpi_limits import render_badge, render_prometheus
from downriver.govern.kpis import EXAMPLES
from downriver.govern.tag_file import (
    DeclaredDescription,
    DeclaredOwners,
    DeclaredPropagation,
    DeclaredTag,
    parse_tag,
)
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import (
    context_of,
    json_response,
    query_number,
    query_text,
    read_struct,
    run_read,
)
from downriver.model.governance import (
    CertifiedPaths,
    DatasetTags,
    Diagnosis,
    Findings,
    Incident,
    InventoryCoverage,
    Kpis,
    PropagatingTags,
    TagReach,
)
from downriver.model.trust.tag_changes import TagChanges
from downriver.model.verdicts import RecordedVerdicts
from downriver.service.limits import DEFAULT_FINDINGS
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.govern.tag_file import Declaration

_MAX_FINDINGS = 10_000
_MAX_EXAMPLES = 100_000


class IncidentRequest(msgspec.Struct, kw_only=True):
    """The entity with a problem, and the time to report as of."""

    entity: str
    at: str | None = None


class TagRequest(msgspec.Struct, kw_only=True):
    """The tags to set on a dataset, column or job, and those to remove from it.

    `owners` and `description` replace those of a dataset or job; empty ones state that there are
    none. `withdraw` ends such statements, so that what producers send counts again.
    """

    entity: str
    tags: list[str] = msgspec.field(default_factory=list)
    remove: list[str] = msgspec.field(default_factory=list)
    owners: list[str] | None = None
    description: str | None = None
    withdraw: list[Literal["owners", "description", "domain", "tier"]] = msgspec.field(
        default_factory=list
    )
    dry_run: bool = False


class PropagationRequest(msgspec.Struct, kw_only=True):
    """The tags that propagate along column lineage, and those that no longer do."""

    tags: list[str] = msgspec.field(default_factory=list)
    remove: list[str] = msgspec.field(default_factory=list)
    dry_run: bool = False


class InventoryRequest(msgspec.Struct, kw_only=True):
    """The names of the tables that exist, and where the list is from."""

    tables: list[str]
    source: str = ""


async def get_diagnosis(request: Request) -> Response:
    """Trace a metric that looks wrong back to its sources: `?dataset=&column=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.entities.diagnose,
        query_text(request, "dataset"),
        query_text(request, "column"),
    )
    return json_response(answer)


async def get_kpis(request: Request) -> Response:
    """Return the KPIs of the whole graph: `?examples=`, the length of each list."""
    kpis = context_of(request).lineage.govern.kpis
    examples = query_number(request, "examples", EXAMPLES, _MAX_EXAMPLES) or 0
    return json_response(await run_read(request, kpis, examples=examples))


async def get_kpi_badge(request: Request) -> Response:
    """Return lineage coverage as an SVG badge."""
    figures = await run_read(request, context_of(request).lineage.govern.kpis)
    return Response(render_badge(figures), media_type="image/svg+xml")


async def get_kpi_metrics(request: Request) -> Response:
    """Return the KPIs in the text format of Prometheus."""
    figures = await run_read(request, context_of(request).lineage.govern.kpis)
    return Response(render_prometheus(figures), media_type="text/plain; version=0.0.4")


async def get_incident(request: Request) -> Response:
    """Report the failures of an entity and the likely causes: `?entity=&at=`."""
    answer = await run_read(
        request,
        context_of(request).lineage.govern.incident_report,
        query_text(request, "entity"),
        request.query_params.get("at"),
    )
    return json_response(answer)


async def post_incident(request: Request) -> Response:
    """Report the failures of an entity, for alert formatters: `{"entity": …, "at": …}`."""
    asked = await read_struct(request, IncidentRequest)
    report = context_of(request).lineage.govern.incident_report
    return json_response(await run_read(request, report, asked.entity, asked.at))


async def get_tag(request: Request) -> Response:
    """Return the columns that a tag reaches: `?tag=&as_of=`. The default is `pii`."""
    query, reach = request.query_params, context_of(request).lineage.govern.tag_reach
    answer = await run_read(request, reach, query.get("tag", "pii"), query.get("as_of"))
    return json_response(answer)


async def post_tags(request: Request) -> Response:
    """Set or remove tags, owners and a description: `{"entity": …, "tags": […], "remove": […]}`."""
    asked = await read_struct(request, TagRequest)
    declared: list[Declaration] = [
        DeclaredTag(asked.entity, parse_tag(tag), True) for tag in asked.tags
    ]
    declared += [DeclaredTag(asked.entity, parse_tag(tag), False) for tag in asked.remove]
    if asked.owners is not None:
        declared.append(DeclaredOwners(asked.entity, tuple(asked.owners)))
    if asked.description is not None:
        declared.append(DeclaredDescription(asked.entity, asked.description.strip()))
    declared += [_withdrawn(asked.entity, label) for label in asked.withdraw]
    if not declared:
        raise InvalidRequestError("tags", "nothing to set or remove")
    tag = partial(context_of(request).lineage.tag, declared, done=not asked.dry_run)
    return json_response(await run_in_threadpool(tag))


def _withdrawn(entity: str, label: str) -> Declaration:
    if label == "owners":
        return DeclaredOwners(entity, None)
    if label == "description":
        return DeclaredDescription(entity, None)
    return DeclaredTag(entity, label, False)


async def post_propagation(request: Request) -> Response:
    """Declare that tags propagate along column lineage: `{"tags": […], "remove": […]}`."""
    asked = await read_struct(request, PropagationRequest)
    declared = [DeclaredPropagation(parse_tag(tag), True) for tag in asked.tags]
    declared += [DeclaredPropagation(parse_tag(tag), False) for tag in asked.remove]
    if not declared:
        raise InvalidRequestError("tags", "no tag")
    tag = partial(context_of(request).lineage.tag, declared, done=not asked.dry_run)
    return json_response(await run_in_threadpool(tag))


async def get_propagation(request: Request) -> Response:
    """Return the tags that propagate along column lineage: `pii`, and those declared so."""
    return json_response(
        await run_read(request, context_of(request).lineage.govern.propagating_tags)
    )


async def get_dataset_tags(request: Request) -> Response:
    """Return the tags of a dataset and its columns, and those that reach a column: `?dataset=`."""
    read = context_of(request).lineage.govern.dataset_tags
    return json_response(await run_read(request, read, query_text(request, "dataset")))


async def get_certified(request: Request) -> Response:
    """Return every certified dataset with the gaps in its upstream lineage."""
    return json_response(
        await run_read(request, context_of(request).lineage.govern.certified_paths)
    )


async def post_inventory(request: Request) -> Response:
    """Measure coverage against a list of tables: `{"source": …, "tables": […]}`."""
    asked = await read_struct(request, InventoryRequest)
    measure = context_of(request).lineage.govern.inventory_coverage
    return json_response(await run_read(request, measure, asked.source, asked.tables))


async def get_verdicts(request: Request) -> Response:
    """Return the recorded verdicts of the gate: `?decision=&since=&limit=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.govern.verdicts,
        decision=query.get("decision"),
        since=query.get("since"),
        limit=query_number(request, "limit", DEFAULT_FINDINGS, _MAX_FINDINGS) or 0,
    )
    return json_response(answer)


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
        limit=query_number(request, "limit", DEFAULT_FINDINGS, _MAX_FINDINGS) or 0,
    )
    return json_response(answer)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/kpis",
        get_kpis,
        KeyRole.READER,
        answers(Kpis, 400),
        whole_store=True,
        query=("examples",),
    ),
    Endpoint(
        "GET",
        "/v1/incidents",
        get_incident,
        KeyRole.READER,
        answers(Incident, *NAMED),
        query=("entity", "at"),
    ),
    Endpoint(
        "POST",
        "/v1/incidents",
        post_incident,
        KeyRole.READER,
        answers(Incident, *NAMED, 413, 503),
        body=IncidentRequest,
    ),
    Endpoint(
        "POST",
        "/v1/tags",
        post_tags,
        KeyRole.WRITER,
        answers(TagChanges, *NAMED, 413, 503),
        body=TagRequest,
    ),
    Endpoint(
        "GET",
        "/v1/tags",
        get_tag,
        KeyRole.READER,
        answers(TagReach, 400),
        query=("tag", "as_of"),
    ),
    Endpoint(
        "GET",
        "/v1/tags/columns",
        get_dataset_tags,
        KeyRole.READER,
        answers(DatasetTags, *NAMED),
        query=("dataset",),
    ),
    Endpoint(
        "GET",
        "/v1/tags/propagation",
        get_propagation,
        KeyRole.READER,
        answers(PropagatingTags),
    ),
    Endpoint(
        "POST",
        "/v1/tags/propagation",
        post_propagation,
        KeyRole.WRITER,
        answers(TagChanges, 400, 413, 503),
        body=PropagationRequest,
    ),
    Endpoint(
        "GET",
        "/v1/certified",
        get_certified,
        KeyRole.READER,
        answers(CertifiedPaths),
    ),
    Endpoint("GET", "/v1/kpis/badge", get_kpi_badge, KeyRole.READER, answers(None)),
    Endpoint("GET", "/v1/kpis/metrics", get_kpi_metrics, KeyRole.READER, answers(None)),
    Endpoint(
        "POST",
        "/v1/inventory",
        post_inventory,
        KeyRole.READER,
        answers(InventoryCoverage, 400, 413, 503),
        body=InventoryRequest,
    ),
    Endpoint(
        "GET",
        "/v1/verdicts",
        get_verdicts,
        KeyRole.READER,
        answers(RecordedVerdicts, 400),
        query=("decision", "since", "limit"),
        whole_store=True,
    ),
    Endpoint(
        "GET",
        "/v1/drift",
        get_drift,
        KeyRole.READER,
        answers(Findings, *NAMED),
        query=("status", "kind", "severity", "since", "of", "limit"),
        whole_store=True,
    ),
    Endpoint(
        "GET",
        "/v1/diagnosis",
        get_diagnosis,
        KeyRole.READER,
        answers(Diagnosis, *NAMED),
        query=("dataset", "column"),
    ),
)
