"""Cached answers of clients: `ETag`, 304 for unchanged answers, and gzip.

The answer of many routes depends only on the events of the store, the URL and the settings. Its tag
is made of these, so that a request for an unchanged answer costs one read of the store's state. The
tag of any other answer is a hash of its body.
"""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING

from starlette.responses import Response

from downriver import __version__, settings
from downriver.http.request import STATE, context_of
from downriver.http.web_files import parse_accept_encoding

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.http.endpoint import Endpoint
    from downriver.store import StoreState

_SMALLEST_GZIPPED = 1024
_LARGE = 64 * 1024  # from this size, an answer is compressed on another thread
_VERY_LARGE = 2**20
_GZIP_LEVEL, _FASTEST_GZIP_LEVEL = 5, 1
_CACHE_CONTROL = "private, no-cache"


async def answer_revalidated(request: Request, endpoint: Endpoint) -> Response:
    """Return the answer of a route that reads, or 304 if the client has it already."""
    if endpoint.of_events and "if-none-match" in request.headers:
        context = context_of(request)
        request.scope[STATE] = await context.reads.run_around(context.lineage.store.state)
        tag = await _tag_of_state(request)
        if _has(request, tag):
            return Response(status_code=304, headers=_headers(tag))
    response = await endpoint.handler(request)
    if response.status_code != 200 or not response.body:
        return response
    body = bytes(response.body)
    if endpoint.of_events and STATE in request.scope:
        tag = await _tag_of_state(request)
    else:
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    if _has(request, tag) or request.headers.get("if-none-match") == "*":
        return Response(status_code=304, headers=_headers(tag))
    response.headers.update(_headers(tag))
    accepted = parse_accept_encoding(request.headers.get("accept-encoding", ""))
    if len(body) >= _SMALLEST_GZIPPED and "gzip" in accepted:
        await _compress(request, response, body)
    return response


async def _tag_of_state(request: Request) -> str:
    state: StoreState = request.scope[STATE]
    url = f"{request.url.path}?{request.url.query}"
    stale_days = settings.read_number(settings.STALE_DAYS)
    scope = (
        await context_of(request).access.identify(request)
    ).scope  # two keys may see different answers
    limits = "" if scope is None else repr(scope.patterns)
    content = f"{__version__} {state.generation} {state.seq} {stale_days} {limits} {url}"
    return f'W/"{hashlib.sha256(content.encode()).hexdigest()[:32]}"'


def _has(request: Request, tag: str) -> bool:
    known = request.headers.get("if-none-match", "")
    return tag.removeprefix("W/") in (one.strip().removeprefix("W/") for one in known.split(","))


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": _CACHE_CONTROL, "Vary": "Accept-Encoding, Authorization"}


async def _compress(request: Request, response: Response, body: bytes) -> None:
    if len(body) < _LARGE:
        packed = gzip.compress(body, _GZIP_LEVEL, mtime=0)
    else:
        level = _GZIP_LEVEL if len(body) < _VERY_LARGE else _FASTEST_GZIP_LEVEL
        packed = await context_of(request).reads.run_around(gzip.compress, body, level, mtime=0)
    response.body = packed
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(packed))
