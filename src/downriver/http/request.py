"""Reading a request and rendering its response: body, query parameters, JSON."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.responses import Response

from downriver.errors import EventTooLargeError, InvalidEventError, InvalidRequestError

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.service import Lineage


class AppContext(NamedTuple):
    """Shared by all requests of one application."""

    lineage: Lineage
    max_body: int


def context_of(request: Request) -> AppContext:
    """Return the context the application was built with."""
    context: AppContext = request.app.state.context
    return context


def json_response(body: Any, status: int = 200) -> Response:
    """Answer with a value of ours as JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def query_text(request: Request, name: str) -> str:
    """Return a query parameter that must be there."""
    value = request.query_params.get(name, "")
    if not value:
        raise InvalidRequestError(name, "missing")
    return value


def query_number(request: Request, name: str, default: int | None, top: int) -> int | None:
    """Return a query parameter that is a whole number from 0 to `top`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > top:
        raise InvalidRequestError(name, f"{text!r} is not a whole number from 0 to {top}")
    return int(text)


_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


async def read_body(request: Request, limit: int) -> bytes:
    """Return the whole body, decompressed; refuse it as soon as it is over the limit."""
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
    # Bounded while it inflates: a small body must not become a large one in memory first.
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    parts: list[bytes] = []
    room = limit + 1
    try:
        async for part in request.stream():
            piece = inflater.decompress(part, room)
            room -= len(piece)
            parts.append(piece)
            if room <= 0:
                raise EventTooLargeError(limit)
    except zlib.error as exc:
        raise InvalidEventError("", f"the body is not valid gzip: {exc}") from exc
    if not inflater.eof:
        raise InvalidEventError("", "the gzip body ends too early")
    return b"".join(parts)
