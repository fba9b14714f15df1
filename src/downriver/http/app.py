"""The routes in one table, the application built from them, and its server."""

from __future__ import annotations

import gc
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import uvicorn
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from downriver import settings
from downriver.errors import DownriverError
from downriver.http import errors, marquez, openlineage
from downriver.http.auth import AccessControl
from downriver.http.code_requests import answer_in_worker, load_graph, request_payload
from downriver.http.connections import LimitedHttpProtocol
from downriver.http.endpoint import Endpoint
from downriver.http.mcp import McpEndpoint
from downriver.http.metrics import ServerMetrics, get_metrics
from downriver.http.openapi import render_openapi
from downriver.http.request import AppContext, BodyBudget, ReadPool, context_of, json_response
from downriver.http.request_log import ROUTE, ObservedRequests, configure_logging
from downriver.http.revalidation import answer_revalidated
from downriver.http.security_headers import SecurityHeaders
from downriver.http.v1 import (
    account,
    ask,
    graph,
    history,
    identity,
    impact,
    news,
    queries,
    registration,
    search,
)
from downriver.http.v1.news import HeadWatch
from downriver.http.web_files import WebFiles
from downriver.impact import Fix
from downriver.isolation import shared_workers
from downriver.model.answers import Paths, PossibleCuts, SameStatement, SameStatements, Trace
from downriver.model.assets import AssetTree, RegisteredAsset
from downriver.model.flows import (
    EntityLineage,
    ExportAnswer,
    Popular,
    RegisteredPipeline,
)
from downriver.model.governance import CertifiedPaths, Diagnosis, Findings, Incident, Kpis, TagReach
from downriver.model.graph_view import EntityView
from downriver.model.verdicts import ImpactAnswer, Verdict
from downriver.service import Status
from downriver.service.capture import SqlCapture
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from socket import socket

    from starlette.requests import Request

    from downriver.isolation import WorkerPool
    from downriver.service import Lineage


class Health(msgspec.Struct):
    """The answer of a running server."""

    status: str


async def get_health(request: Request) -> Response:
    """Return `{"status": "ok"}` when the server is running."""
    return json_response(Health("ok"))


async def get_readiness(request: Request) -> Response:
    """Return `{"status": "ok"}` when the store can keep events, else 503 and the reason."""
    await run_in_threadpool(context_of(request).lineage.admin.check_ready)
    return json_response(Health("ok"))


async def get_openapi(request: Request) -> Response:
    """Return the OpenAPI description of this API."""
    return json_response(render_openapi(ENDPOINTS))


_ERROR = errors.ErrorBody

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/v1/lineage",
        openlineage.post_event,
        KeyRole.WRITER,
        {201: None, 400: _ERROR, 413: _ERROR, 503: _ERROR},
        body=dict,
    ),
    Endpoint(
        "POST",
        "/api/v1/lineage/batch",
        openlineage.post_batch,
        KeyRole.WRITER,
        {200: openlineage.BatchResult, 204: None, 400: _ERROR, 413: _ERROR, 503: _ERROR},
        body=list,
    ),
    *marquez.ENDPOINTS,
    Endpoint(
        "POST",
        "/v1/lineage/trace",
        registration.post_asset,
        KeyRole.WRITER,
        {201: RegisteredAsset, 413: _ERROR, 422: _ERROR, 503: _ERROR},
        body=registration.AssetRequest,
    ),
    Endpoint(
        "GET",
        "/v1/lineage/{id}",
        registration.get_asset_tree,
        KeyRole.READER,
        {200: AssetTree, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("direction", "depth"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/trace",
        queries.get_trace,
        KeyRole.READER,
        {200: Trace, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("entity", "direction", "depth", "as_of", "limit", "readers"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/paths",
        queries.get_paths,
        KeyRole.READER,
        {200: Paths, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("source", "target", "limit"),
        of_events=True,
    ),
    Endpoint(
        "POST",
        "/v1/lineage/impact",
        impact.post_impact,
        KeyRole.READER,
        {200: impact.ImpactReport, 400: _ERROR, 404: _ERROR, 409: _ERROR, 413: _ERROR},
        body=dict,
    ),
    Endpoint(
        "POST",
        "/v1/gate",
        impact.post_gate,
        KeyRole.WRITER,
        {200: Verdict, 400: _ERROR, 404: _ERROR, 409: _ERROR, 413: _ERROR},
        body=dict,
    ),
    Endpoint(
        "POST",
        "/v1/preview",
        impact.post_preview,
        KeyRole.READER,
        {200: impact.Preview, 400: _ERROR, 404: _ERROR, 409: _ERROR, 413: _ERROR},
        body=impact.PreviewRequest,
    ),
    Endpoint(
        "POST",
        "/v1/same",
        identity.post_same,
        KeyRole.WRITER,
        {201: SameStatement, 400: _ERROR, 404: _ERROR, 409: _ERROR, 413: _ERROR, 503: _ERROR},
        body=identity.SameRequest,
    ),
    Endpoint("GET", "/v1/same", identity.get_same, KeyRole.READER, {200: SameStatements}),
    Endpoint("GET", "/v1/cuts", identity.get_cuts, KeyRole.READER, {200: PossibleCuts}),
    Endpoint("GET", "/v1/kpis", queries.get_kpis, KeyRole.READER, {200: Kpis}),
    Endpoint(
        "GET",
        "/v1/incidents",
        queries.get_incident,
        KeyRole.READER,
        {200: Incident, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("entity", "at"),
    ),
    Endpoint(
        "GET",
        "/v1/tags",
        queries.get_tag,
        KeyRole.READER,
        {200: TagReach, 400: _ERROR},
        query=("tag",),
    ),
    Endpoint(
        "GET",
        "/v1/certified",
        queries.get_certified,
        KeyRole.READER,
        {200: CertifiedPaths},
    ),
    Endpoint(
        "GET",
        "/v1/drift",
        queries.get_drift,
        KeyRole.READER,
        {200: Findings, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("status", "kind", "severity", "since", "of", "limit"),
    ),
    Endpoint(
        "POST",
        "/v1/flows",
        registration.post_flows,
        KeyRole.WRITER,
        {201: registration.FlowsAnswer, 400: _ERROR, 409: _ERROR, 413: _ERROR, 503: _ERROR},
        body=registration.FlowsRequest,
    ),
    Endpoint(
        "POST",
        "/v1/pipelines",
        registration.post_pipeline,
        KeyRole.WRITER,
        {201: RegisteredPipeline, 400: _ERROR, 409: _ERROR, 413: _ERROR, 503: _ERROR},
        body=registration.PipelineRequest,
    ),
    Endpoint(
        "POST",
        "/v1/sql",
        registration.post_sql,
        KeyRole.WRITER,
        {201: SqlCapture, 400: _ERROR, 413: _ERROR, 503: _ERROR},
        body=registration.SqlRequest,
    ),
    Endpoint(
        "POST",
        "/v1/impact",
        impact.post_impact_request,
        KeyRole.READER,
        {200: ImpactAnswer, 400: _ERROR, 404: _ERROR, 409: _ERROR, 413: _ERROR},
        body=impact.PolicyImpactRequest,
    ),
    Endpoint(
        "POST",
        "/v1/fix",
        impact.post_fix,
        KeyRole.READER,
        {200: Fix, 400: _ERROR, 404: _ERROR, 409: _ERROR, 413: _ERROR},
        body=impact.FixRequest,
    ),
    Endpoint(
        "GET",
        "/v1/related",
        queries.get_related,
        KeyRole.READER,
        {200: EntityLineage, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("entity", "direction", "depth", "as_of", "limit"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/entity",
        queries.get_entity,
        KeyRole.READER,
        {200: EntityView, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("entity",),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/popular",
        queries.get_popular,
        KeyRole.READER,
        {200: Popular, 400: _ERROR},
        query=("limit",),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/column-lineage",
        queries.get_column_lineage,
        KeyRole.READER,
        {200: queries.ColumnLineageAnswer, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("dataset", "column"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/diagnosis",
        queries.get_diagnosis,
        KeyRole.READER,
        {200: Diagnosis, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=("dataset", "column"),
    ),
    Endpoint(
        "GET",
        "/v1/export",
        queries.get_export,
        KeyRole.READER,
        {200: ExportAnswer, 400: _ERROR, 404: _ERROR, 409: _ERROR},
        query=(
            *("entity", "q", "ids", "format", "direction", "depth", "as_of", "focus", "diff"),
            "readers",
        ),
        optional=("entity", "q"),
        of_events=True,
    ),
    *graph.ENDPOINTS,
    *history.ENDPOINTS,
    *search.ENDPOINTS,
    *account.ENDPOINTS,
    *ask.ENDPOINTS,
    *news.ENDPOINTS,
    Endpoint("GET", "/v1/status", queries.get_status, KeyRole.READER, {200: Status}),
    Endpoint("GET", "/metrics", get_metrics, KeyRole.READER, {200: None}),
    Endpoint("GET", "/healthz", get_health, None, {200: Health}),
    Endpoint("GET", "/readyz", get_readiness, None, {200: Health, 503: _ERROR}),
    Endpoint("GET", "/openapi.json", get_openapi, None, {200: dict}),
)


def build_app(lineage: Lineage, workers: WorkerPool | None = None) -> Starlette:
    """Return the application that serves one store. Workers read the code that clients send."""
    workers = workers or shared_workers()
    access = AccessControl(lineage)
    max_body = settings.read_number(settings.MAX_EVENT_MB) * 2**20
    bodies = BodyBudget(settings.read_number(settings.BODIES_MB) * 2**20)
    metrics = ServerMetrics()
    mcp = McpEndpoint(lineage, access, max_body, workers)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.lifespan(app):
            yield
        workers.close()

    app = Starlette(
        routes=[
            Route("/mcp", mcp, methods=["GET", "POST", "DELETE"]),
            *(
                Route(
                    # The id of a dataset may contain slashes.
                    e.path.replace("{id}", "{id:path}"),
                    _guarded(e, access),
                    methods=[e.method],
                    name=e.handler.__name__,
                )
                for e in ENDPOINTS
            ),
        ],
        lifespan=lifespan,
        middleware=[Middleware(ObservedRequests, metrics=metrics), Middleware(SecurityHeaders)],
        exception_handlers={
            DownriverError: errors.answer_downriver_error,
            HTTPException: errors.answer_http_error,
            ClientDisconnect: errors.answer_disconnect,
            Exception: errors.answer_fault,
        },
    )
    app.state.context = AppContext(
        lineage=lineage,
        max_body=max_body,
        bodies=bodies,
        metrics=metrics,
        simulation_threads=CapacityLimiter(workers.size),
        workers=workers,
        access=access,
        head=HeadWatch(lineage),
        reads=ReadPool.from_settings(),
    )
    app.router.default = WebFiles()
    return app


def _guarded(endpoint: Endpoint, access: AccessControl) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        request.scope[ROUTE] = endpoint.path
        await access.admit(request, endpoint.role)  # before the body is read
        with context_of(request).bodies.reserve() as request.state.body:
            if endpoint.method == "GET" and endpoint.path.startswith("/v1/"):
                return await answer_revalidated(request, endpoint)
            return await endpoint.handler(request)

    return handle


def serve(
    lineage: Lineage,
    host: str,
    port: int,
    *,
    on_start: Callable[[], object] | None = None,
    log_format: str = "text",
) -> None:
    """Serve one store until interrupted. Accepted events are on disk when this returns.

    Call `check_bind` first. `on_start` is called once the server accepts connections.
    """
    configure_logging(log_format)
    threading.Thread(target=warm_up, args=(lineage,), daemon=True).start()
    make_server(lineage, host, port, on_start).run()


class _Server(uvicorn.Server):
    """A server that reports when it accepts connections."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], object] | None) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._on_start is not None:
            threading.Thread(target=self._on_start, daemon=True).start()


def make_server(
    lineage: Lineage,
    host: str = "127.0.0.1",
    port: int = 0,
    on_start: Callable[[], object] | None = None,
) -> uvicorn.Server:
    """Return a server of one store. Its caller runs it, possibly on sockets of its own."""
    config = uvicorn.Config(
        build_app(lineage),
        host=host,
        port=port,
        http=LimitedHttpProtocol,
        ws="none",
        limit_concurrency=settings.read_number(settings.MAX_CONNECTIONS),
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    return _Server(config, on_start)


def warm_up(lineage: Lineage) -> None:
    """Load the graph and compile code now, so that the first requests need not wait."""
    lineage.session.prepare()
    payload = request_payload(lineage, load_graph, b"")
    if payload is not None:
        shared_workers().warm_up(answer_in_worker, payload)
    # The objects loaded so far stay alive. Exclude them from garbage collection, which would
    # otherwise pause requests for 50 ms and more.
    gc.collect()
    gc.freeze()
