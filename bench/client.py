"""A load client with little CPU cost: plain sockets, requests encoded in advance."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

import msgspec
import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEAD = (
    b"POST /api/v1/lineage HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)
_STORED = b"HTTP/1.1 201 "


class Outcome(msgspec.Struct):
    """The result of posting events: the total time, and the time of each event."""

    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        """Events per second."""
        return len(self.latencies) / self.seconds


def render_request(event: bytes) -> bytes:
    """Return the bytes that post an event."""
    return _HEAD % len(event) + event


def event_of(request: bytes) -> bytes:
    """Return the event that a request posts."""
    return request.partition(b"\r\n\r\n")[2]


def post_all(port: int, requests: Iterator[bytes], *, connections: int, seconds: float) -> Outcome:
    """Post until there are no more requests or the time is up. Each response must be 201."""
    load = _Load(requests, time.perf_counter() + seconds, lambda request: None)
    started = time.perf_counter()
    uvloop.run(load.run(port, connections))
    ended = time.perf_counter()
    if load.failure:
        raise RuntimeError(load.failure)
    return Outcome(ended - started, load.latencies)


async def post_until_cut_off(port: int, requests: Iterator[bytes], connections: int) -> list[bytes]:
    """Post until the server is down or refuses, and return the requests with response 201."""
    stored: list[bytes] = []
    load = _Load(requests, float("inf"), stored.append)
    await load.run(port, connections)
    return stored


class _Load:
    """The remaining requests, which all connections share."""

    def __init__(
        self, requests: Iterator[bytes], deadline: float, stored: Callable[[bytes], None]
    ) -> None:
        self._requests = requests
        self._deadline = deadline
        self.stored = stored
        self.latencies: list[float] = []
        self.failure = ""

    async def run(self, port: int, connections: int) -> None:
        loop = asyncio.get_running_loop()
        opened = [
            await loop.create_connection(lambda: _Connection(self), "127.0.0.1", port)
            for _ in range(connections)
        ]
        for _, connection in opened:
            connection.send()
        await asyncio.gather(*(connection.closed for _, connection in opened))

    def next(self) -> bytes | None:
        if self.failure or time.perf_counter() > self._deadline:
            return None
        return next(self._requests, None)


class _Connection(asyncio.Protocol):
    """One request in flight at a time, on a connection that stays open."""

    def __init__(self, load: _Load) -> None:
        self._load = load
        self._request: bytes | None = None
        self._answer = b""
        self._sent_at = 0.0
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self) -> None:
        self._request = self._load.next()
        if self._request is None or self._transport.is_closing():
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if b"\r\n\r\n" not in self._answer:
            return  # the headers are incomplete; a 201 has no body
        assert self._request is not None
        if not self._answer.startswith(_STORED):
            self._load.failure = f"answered {self._answer.decode()}"
            self._transport.close()
            return
        self._load.latencies.append(time.perf_counter() - self._sent_at)
        self._load.stored(self._request)
        self._answer = b""
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._request is not None and not self._load.failure:
            self._load.failure = f"cut off {self._answer.decode()}"
        self.closed.set_result(None)
