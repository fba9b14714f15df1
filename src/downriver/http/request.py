"""Reading a request and rendering its response: body, query parameters, JSON."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from starlette.responses import Response

from downriver.errors import EventTooLargeError, InvalidEventError, InvalidRequestError
from downriver.openlineage.wire import decode

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from starlette.requests import Request

    from downriver.isolation import WorkerPool
    from downriver.service import Lineage

T = TypeVar("T")
MAX_DEPTH = 10_000


class AppContext(NamedTuple):
    """What all requests of one application share."""

    lineage: Lineage
    max_body: int
    simulation_threads: CapacityLimiter  # as many as there are workers
    workers: WorkerPool


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
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return await _inflated(request, limit)
    if encoding not in ("", "identity"):
        raise InvalidEventError("Content-Encoding", f"{encoding!r} is not supported; use gzip")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise EventTooLargeError(limit)
        parts.append(part)
    return b"".join(parts)


async def _inflated(request: Request, limit: int) -> bytes:
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
