"""The only place where errors become HTTP statuses, and the one shape of error body.

`{"error": "EntityNotFound", "detail": "what is wrong, and what to do", …}`. Under `/api/` the body
also has the keys of Marquez: `{"code": 404, "message": "what is wrong …", "details": …}`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from downriver import errors
from downriver.http.request import context_of
from downriver.http.server.security_headers import SECURITY_HEADERS

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger("downriver")

CLIENT_CLOSED = 499  # nginx's status for a client that left; only metrics and logs show it
REFUSED_BECAUSE = "downriver.refused_because"  # in the scope of a request, for the audit log
CLOSED_BECAUSE = "downriver.closed_because"  # in the state of a request whose connection was closed

_STATUSES: tuple[tuple[type[errors.DownriverError], int], ...] = (
    (errors.InvalidEventError, 400),
    (errors.InvalidRequestError, 400),
    (errors.InvalidAssetError, 422),
    (errors.CodeLimitError, 422),
    (errors.EventTooLargeError, 413),
    (errors.EntityNotFoundError, 404),
    (errors.ColumnsNotFoundError, 404),
    (errors.AmbiguousNameError, 409),
    (errors.UnauthorizedError, 401),
    (errors.ForbiddenError, 403),
    # 503, not 429: OpenLineage clients retry on 503 and drop the event on 429.
    (errors.StoreError, 503),
    (errors.ServerError, 502),
    (errors.NoEventLogError, 501),
    (errors.MissingDependencyError, 501),
)


_MOST_LISTED = 1_000


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """The body of every failed request."""

    error: str
    detail: str
    field: str | None = None
    near: list[str] = []
    candidates: list[str] = []
    outside: list[str] = []
    code: int | None = None
    message: str | None = None
    details: str | None = None


def status_of(kind: type[errors.DownriverError]) -> int:
    """Return the HTTP status of a kind of error."""
    return next((status for parent, status in _STATUSES if issubclass(kind, parent)), 500)


def error_body(error: errors.DownriverError, store_url: str) -> ErrorBody:
    """Return the body for an error. It does not contain the location of the store."""
    return ErrorBody(
        error=type(error).__name__.removesuffix("Error"),
        detail=error.message.replace(store_url, "the store"),
        field=getattr(error, "field", None) or None,
        near=getattr(error, "near", []),
        candidates=getattr(error, "candidates", []),
        outside=getattr(error, "outside", [])[:_MOST_LISTED],
    )


async def answer_downriver_error(request: Request, error: Exception) -> Response:
    """Return the response for a Downriver error."""
    assert isinstance(error, errors.DownriverError)  # noqa: S101
    body = error_body(error, context_of(request).lineage.admin.store_url)
    request.scope[REFUSED_BECAUSE] = body.detail
    status = status_of(type(error))
    return error_response(msgspec.json.encode(_for_path(request, body, status)), status)


def _for_path(request: Request, body: ErrorBody, status: int) -> ErrorBody:
    """Return a body with the keys of Marquez for a path of its API."""
    if not request.url.path.startswith("/api/"):
        return body
    details = ", ".join(body.near or body.candidates or body.outside) or body.field or body.error
    return msgspec.structs.replace(body, code=status, message=body.detail, details=details)


def error_response(body: bytes, status: int) -> Response:
    """Return the response with a rendered `ErrorBody`."""
    headers = {"Retry-After": "1"} if status == 503 else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body, status, headers=headers, media_type="application/json")


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Return the response for an unknown path or method, in the same shape."""
    assert isinstance(error, HTTPException)  # noqa: S101
    name = {404: "NotFound", 405: "MethodNotAllowed"}.get(error.status_code, "HttpError")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    body = _for_path(request, ErrorBody(name, detail), error.status_code)
    return _json(body, error.status_code, dict(error.headers or {}))


async def answer_disconnect(request: Request, error: Exception) -> Response:
    """Log that a client disconnected before its request was complete. No response is sent."""
    reason = request.scope.get("state", {}).get(CLOSED_BECAUSE, "the client closed the connection")
    host = request.client.host if request.client else "a client"
    # `%r`: the path is the client's own text.
    log.warning("%s %r of %s not complete: %s", request.method, request.url.path, host, reason)
    return Response(status_code=CLIENT_CLOSED)


async def answer_fault(request: Request, error: Exception) -> Response:
    """Return the response for an unexpected error. Only the server's log has the details."""
    body = ErrorBody("InternalError", "unexpected error; see the log of the server")
    # This answer does not pass through the middleware.
    return _json(_for_path(request, body, 500), 500, SECURITY_HEADERS)


def _json(body: Any, status: int, headers: dict[str, str]) -> Response:
    return Response(
        msgspec.json.encode(body), status, headers=headers, media_type="application/json"
    )
