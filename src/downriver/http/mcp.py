"""`/mcp`: the tools for language models over streamable HTTP, with the same API keys."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request

from downriver.errors import DownriverError
from downriver.http.endpoint import Endpoint
from downriver.http.errors import answer_downriver_error
from downriver.http.request import context_of, limit_context
from downriver.http.server.request_log import ROUTE
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope, Send

    from downriver.http.access import AccessControl
    from downriver.isolation import WorkerPool
    from downriver.service import Lineage


class McpEndpoint:
    """Serves MCP.

    Its libraries are loaded at the first request, because most servers never get one.
    """

    def __init__(
        self, lineage: Lineage, access: AccessControl, max_body: int, workers: WorkerPool
    ) -> None:
        self._lineage = lineage
        self._workers = workers
        self._access = access
        self._max_body = max_body
        self._running: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the API key of a request and pass the request on."""
        request = Request(scope, receive)
        scope[ROUTE] = "/mcp"
        try:
            principal = await self._access.admit(request, MCP_ENDPOINT)
            limit_context(request, None if principal is None else principal.scope)
            manager = await self._manager()
        except DownriverError as error:
            response = await answer_downriver_error(request, error)
            await response(scope, receive, send)
            return
        with context_of(request).bodies.reserve() as reservation:
            complete = False

            async def receive_counted() -> Message:
                nonlocal complete
                message = await receive()
                if message["type"] == "http.disconnect" and not complete:
                    raise ClientDisconnect  # MCP's library would log a traceback
                complete = not message.get("more_body", False)
                reservation.add(len(message.get("body", b"")))
                return message

            await manager.handle_request(scope, receive_counted, send)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Stop the session manager when the server stops."""
        del app
        yield
        self._stopping.set()
        if self._running is not None:
            await self._running

    async def _manager(self) -> StreamableHTTPSessionManager:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            # A task of its own: the manager must outlive the request that starts it.
            self._running = asyncio.create_task(self._serve(self._ready))
            self._running.add_done_callback(self._on_end)
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        manager = await asyncio.to_thread(self._build)
        async with manager.run():
            ready.set_result(manager)
            await self._stopping.wait()

    def _on_end(self, task: asyncio.Task[None]) -> None:
        """Pass an error on to the waiting requests. The next request starts the manager again."""
        error = None if task.cancelled() else task.exception()
        if error is not None and self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)
        self._ready = self._running = None

    def _build(self) -> StreamableHTTPSessionManager:
        from downriver.agent.mcp_server import build_server
        from downriver.agent.tools import ToolContext
        from downriver.http.isolated_lineage import IsolatedLineage
        from downriver.sdk import SyncTracker, Tracker
        from downriver.sdk.delivery import open_spool

        repository = self._lineage.session.repository
        spool = open_spool()

        def tools_of(request: Any) -> ToolContext:
            backend = IsolatedLineage(context_of(request).lineage, self._workers)
            tracker = Tracker(SyncTracker(backend, spool))
            return ToolContext(tracker, None, repository.root if repository else None)

        server = build_server(tools_of, self._may_write)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        # Stateless: any of several servers may answer a request.
        return StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=self._max_body
        )

    async def _may_write(self, request: Any) -> bool:
        return (await self._access.identify(request)).role >= KeyRole.WRITER


async def _answer_mcp(request: Request) -> Response:
    raise NotImplementedError("McpEndpoint answers")


# The entry in the table of routes, for access control. `McpEndpoint` handles the requests.
MCP_ENDPOINT = Endpoint("POST", "/mcp", _answer_mcp, KeyRole.READER, {200: None})
