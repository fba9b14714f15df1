"""Reading a request body within its limit, compressed or not."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from downriver.errors import EventTooLargeError, InvalidEventError

if TYPE_CHECKING:
    from starlette.requests import Request

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
