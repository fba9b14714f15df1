"""The application: the table of all routes, their guard, and the server."""

from __future__ import annotations

import gc
import threading
from contextlib import asynccontextmanager
from functools import cache
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
from downriver.http import atlas, errors, marquez, openlineage
from downriver.http.access import AccessControl, AllowedHosts
from downriver.http.access.oidc import TokenVerifier
from downriver.http.code_requests import answer_in_worker, load_graph, request_payload
from downriver.http.endpoint import EncodedRoute, Endpoint, LookupRouter, answers
from downriver.http.mcp import MCP_ENDPOINT, McpEndpoint
from downriver.http.metrics import KpiGauges, ServerMetrics, get_metrics
from downriver.http.openapi import render_openapi
from downriver.http.request import (
    AppContext,
    BodyBudget,
    ReadPool,
    context_of,
    json_response,
    limit_context,
)
from downriver.http.server.connections import LimitedHttpProtocol
from downriver.http.server.request_log import ROUTE, ObservedRequests, configure_logging
from downriver.http.server.revalidation import answer_revalidated
from downriver.http.server.security_headers import SecurityHeaders, cross_origin_middleware
from downriver.http.v1 import (
    account,
    ask,
    governance,
    graph,
    history,
    identity,
    impact,
    integrations,
    news,
    queries,
    registration,
    retention,
    search,
)
from downriver.http.v1.news import HeadWatch
from downriver.http.v1.trust import audit, checks, contracts, evidence, privacy, triggers
from downriver.http.web_files import WebFiles
from downriver.isolation import shared_workers
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from socket import socket

    from starlette.requests import Request

    from downriver.http.access import TlsFiles
    from downriver.isolation import WorkerPool
    from downriver.service import Lineage


class Health(msgspec.Struct):
    """The answer of a running server."""

    status: str


async def get_health(request: Request) -> Response:
    """Return `{"status": "ok"}` when the server is running."""
    return json_response(Health("ok"))


async def get_readiness(request: Request) -> Response:
    """Return `{"status": "ok"}` if the store can store events, else 503 and the reason."""
    await run_in_threadpool(context_of(request).lineage.admin.check_ready)
    return json_response(Health("ok"))


async def get_openapi(request: Request) -> Response:
    """Return the OpenAPI description of this API."""
    return Response(_openapi_document(), media_type="application/json")


@cache
def _openapi_document() -> bytes:
    # Rendered once: it takes 50 ms, and the route is open to clients without a key.
    return msgspec.json.encode(render_openapi(ENDPOINTS))


ENDPOINTS: tuple[Endpoint, ...] = (
    *openlineage.ENDPOINTS,
    *atlas.ENDPOINTS,
    *marquez.ENDPOINTS,
    *registration.ENDPOINTS,
    *queries.ENDPOINTS,
    *impact.ENDPOINTS,
    *identity.ENDPOINTS,
    *governance.ENDPOINTS,
    *checks.ENDPOINTS,
    *retention.ENDPOINTS,
    *contracts.ENDPOINTS,
    *privacy.ENDPOINTS,
    *triggers.ENDPOINTS,
    *evidence.ENDPOINTS,
    *audit.ENDPOINTS,
    *graph.ENDPOINTS,
    *history.ENDPOINTS,
    *integrations.ENDPOINTS,
    *search.ENDPOINTS,
    *account.ENDPOINTS,
    *ask.ENDPOINTS,
    *news.ENDPOINTS,
    Endpoint("GET", "/metrics", get_metrics, KeyRole.READER, answers(None), whole_store=True),
    Endpoint("GET", "/healthz", get_health, None, answers(Health)),
    Endpoint("GET", "/readyz", get_readiness, None, answers(Health, 503)),
    Endpoint("GET", "/openapi.json", get_openapi, None, answers(dict)),
)


def build_app(lineage: Lineage, workers: WorkerPool | None = None) -> Starlette:
    """Return the application that serves one store. Workers read the code that clients send."""
    workers = workers or shared_workers()
    access = AccessControl(lineage, AllowedHosts.from_settings(), TokenVerifier.from_settings())
    max_body = settings.read_number(settings.MAX_EVENT_MB) * 2**20
    bodies = BodyBudget(settings.read_number(settings.BODIES_MB) * 2**20)
    metrics = ServerMetrics()
    reads = ReadPool.from_settings()
    mcp = McpEndpoint(lineage, access, max_body, workers)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.lifespan(app):
            yield
        await run_in_threadpool(access.refusals.write)
        workers.close()

    app = Starlette(
        middleware=[
            Middleware(ObservedRequests, metrics=metrics, refusals=access.refusals),
            Middleware(SecurityHeaders),
            *cross_origin_middleware(),
        ],
        exception_handlers={
            DownriverError: errors.answer_downriver_error,
            HTTPException: errors.answer_http_error,
            ClientDisconnect: errors.answer_disconnect,
            Exception: errors.answer_fault,
        },
    )
    mcp_route = Route(MCP_ENDPOINT.path, mcp, methods=["GET", "POST", "DELETE"])
    routes = [_route(endpoint, access) for endpoint in ENDPOINTS]
    app.router = LookupRouter([mcp_route, *routes], lifespan)
    app.router.default = WebFiles()
    app.state.context = AppContext(
        lineage=lineage,
        max_body=max_body,
        bodies=bodies,
        metrics=metrics,
        kpi_gauges=KpiGauges(lineage.govern.kpis, reads),
        simulation_threads=CapacityLimiter(workers.size),
        workers=workers,
        access=access,
        head=HeadWatch(lineage),
        reads=reads,
    )
    return app


def _route(endpoint: Endpoint, access: AccessControl) -> Route:
    of_marquez = endpoint.path.startswith("/api/")
    return (EncodedRoute if of_marquez else Route)(
        # The id of a dataset may contain slashes.
        endpoint.path if of_marquez else endpoint.path.replace("{id}", "{id:path}"),
        _guarded(endpoint, access),
        methods=[endpoint.method],
        name=endpoint.handler.__name__,
    )


def _guarded(endpoint: Endpoint, access: AccessControl) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        request.scope[ROUTE] = endpoint.path
        principal = await access.admit(request, endpoint)  # before the body is read
        if principal is not None:
            limit_context(request, principal.scope)
        with context_of(request).bodies.reserve() as request.state.body:
            if endpoint.of_events or (
                endpoint.method == "GET" and endpoint.path.startswith("/v1/")
            ):
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
    tls: TlsFiles | None = None,
) -> None:
    """Serve one store until interrupted. Accepted events are on disk when this returns.

    Call `check_bind` first. `on_start` is called once the server accepts connections.
    """
    configure_logging(log_format)
    threading.Thread(target=warm_up, args=(lineage,), daemon=True).start()
    with lineage.checkpoints.schedule():
        make_server(lineage, host, port, on_start, tls).run()


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
    tls: TlsFiles | None = None,
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
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
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
