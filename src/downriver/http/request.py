"""Reading a request and rendering its response: body, query parameters, JSON."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from starlette.responses import Response

from downriver.errors import (
    EventTooLargeError,
    InvalidEventError,
    InvalidRequestError,
    StoreBusyError,
)
from downriver.openlineage.wire import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anyio import CapacityLimiter
    from starlette.requests import Request

    from downriver.http.auth import AccessControl
    from downriver.http.metrics import ServerMetrics
    from downriver.http.v1.news import HeadWatch
    from downriver.isolation import WorkerPool
    from downriver.service import Lineage

T = TypeVar("T")
MAX_DEPTH = 10_000


class BodyBudget:
    """The bytes of all request bodies that a server holds, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0

    @contextmanager
    def reserve(self) -> Iterator[BodyReservation]:
        """Yield the reservation of one request, and return its bytes at the end."""
        reservation = BodyReservation(self)
        try:
            yield reservation
        finally:
            self.held -= reservation.size

    def take(self, size: int) -> None:
        """Count bytes, or raise if that would be too many."""
        if self.held + size > self._limit:
            raise StoreBusyError("too many request bodies are being received or answered")
        self.held += size


class BodyReservation:
    """The bytes of one request body so far."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0

    def add(self, size: int) -> None:
        """Count another part of the body."""
        self._budget.take(size)
        self.size += size


class AppContext(NamedTuple):
    """What all requests of one application share."""

    lineage: Lineage
    max_body: int
    bodies: BodyBudget
    metrics: ServerMetrics
    simulation_threads: CapacityLimiter  # as many as there are workers
    workers: WorkerPool
    access: AccessControl
    head: HeadWatch


def context_of(request: Request) -> AppContext:
    """Return the context of the application."""
    context: AppContext = request.app.state.context
    return context


def json_response(body: Any, status: int = 200) -> Response:
    """Return a response with a value as JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def query_text(request: Request, name: str) -> str:
    """Return a required query parameter."""
    value = request.query_params.get(name, "")
    if not value:
        raise InvalidRequestError(name, "missing")
    return value


def query_number(request: Request, name: str, default: int | None, maximum: int) -> int | None:
    """Return a query parameter that is a whole number from 0 to `maximum`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > maximum:
        raise InvalidRequestError(name, f"{text!r} is not a whole number from 0 to {maximum}")
    return int(text)


def query_flag(request: Request, name: str) -> bool:
    """Return a query parameter that is `true` or `false`; false if it is missing."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidRequestError(name, f"{text!r} is not true or false")
    return text == "true"


_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


async def read_body(request: Request, limit: int) -> bytes:
    """Return the decompressed body. Raise as soon as it is larger than `limit` bytes."""
    reservation: BodyReservation = request.state.body
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return await _inflated(request, limit, reservation)
    if encoding not in ("", "identity"):
        raise InvalidEventError("Content-Encoding", f"{encoding!r} is not supported; use gzip")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise EventTooLargeError(limit)
        reservation.add(len(part))
        parts.append(part)
    return b"".join(parts)


async def _inflated(request: Request, limit: int, reservation: BodyReservation) -> bytes:
    # Decompress within the limit: a small body could expand to gigabytes in memory.
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    parts: list[bytes] = []
    remaining = limit + 1
    try:
        async for received in request.stream():
            part = received
            while part:
                if inflater.eof:  # a gzip file may consist of several members
                    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
                piece = inflater.decompress(part, remaining)
                remaining -= len(piece)
                reservation.add(len(piece))
                parts.append(piece)
                if remaining <= 0:
                    raise EventTooLargeError(limit)
                part = inflater.unused_data
    except zlib.error as exc:
        raise InvalidEventError("", f"the body is not valid gzip: {exc}") from exc
    if not inflater.eof:
        raise InvalidEventError("", "the gzip body is truncated")
    return b"".join(parts)


async def read_struct(request: Request, kind: type[T]) -> T:
    """Return the body decoded as a msgspec type."""
    return decode_struct(await read_body(request, context_of(request).max_body), kind)


def decode_struct(body: bytes, kind: type[T]) -> T:
    """Return a body decoded as a msgspec type."""
    try:
        return decode(body, kind)
    except InvalidEventError as exc:
        raise InvalidRequestError(exc.field or "body", exc.reason) from exc
