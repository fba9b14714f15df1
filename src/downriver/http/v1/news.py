"""Long polling: a request that is answered as soon as the store has new events."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import context_of, json_response, query_number
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.service import Lineage

_LONGEST_WAIT = 25  # seconds; proxies close a connection without traffic after 30 to 60
_LARGEST_HEAD = 999_999_999
_INTERVAL = 0.5


class News(msgspec.Struct, kw_only=True):
    """The number of the last event in the store."""

    head: int


class HeadWatch:
    """The head of the store, read once for all requests that wait for a new event."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._head = 0
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def head(self) -> int:
        """Return the number of the last event, at most half a second old."""
        if time.monotonic() - self._read_at >= _INTERVAL:
            self._reading = self._reading or asyncio.create_task(self._read())
            await asyncio.shield(self._reading)
        return self._head

    async def _read(self) -> None:
        try:
            state = await run_in_threadpool(self._lineage.store.state)
            self._head, self._read_at = state.seq, time.monotonic()
        finally:
            self._reading = None


async def get_news(request: Request) -> Response:
    """Return the head of the store once it is not `head`, or after `wait` seconds."""
    known = query_number(request, "head", None, _LARGEST_HEAD)
    wait = query_number(request, "wait", 0, _LONGEST_WAIT) or 0
    watch = context_of(request).head
    deadline = time.monotonic() + wait
    head = await watch.head()
    while head == known and time.monotonic() < deadline and not await request.is_disconnected():
        await asyncio.sleep(_INTERVAL)
        head = await watch.head()
    return json_response(News(head=head))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/v1/news", get_news, KeyRole.READER, answers(News, 400), query=("head", "wait")
    ),
)
