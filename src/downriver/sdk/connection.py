"""Requests to one Downriver server over persistent connections."""

from __future__ import annotations

import http.client
from collections import deque
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from downriver import errors
from downriver.fork_safety import keep_inherited

T = TypeVar("T")

READ_TIMEOUT = 60.0
WRITE_TIMEOUT = (
    10.0  # short, because the caller may be a running job; on a timeout the event is spooled
)
_REDIRECT, _FAILED = 300, 400


class _Failure(msgspec.Struct):
    """The body of an error response."""

    error: str = ""
    detail: str = ""
    field: str | None = None
    near: list[str] = []
    candidates: list[str] = []


class Connection:
    """Sends requests to a server. Safe to share between threads."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._parts = urlsplit(self._url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: deque[http.client.HTTPConnection] = deque()

    def renew(self) -> None:
        """Drop the connections of the parent process after a fork."""
        keep_inherited(*self._idle)
        self._idle = deque()

    def close(self) -> None:
        """Close every connection that is not in use."""
        while self._idle:
            self._idle.pop().close()

    def get(self, path: str, query: dict[str, Any], kind: type[T]) -> T:
        """Send a GET request, without parameters that are None, and return the decoded answer."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(given)}", None, kind, READ_TIMEOUT)

    def post(self, path: str, body: Any, kind: type[T], timeout: float = WRITE_TIMEOUT) -> T:
        """Send a POST request and return the decoded answer."""
        return self._send("POST", path, msgspec.json.encode(body), kind, timeout)

    def _send(self, method: str, path: str, body: bytes | None, kind: type[T], timeout: float) -> T:
        status, answer = self._request(method, self._parts.path + path, body, timeout)
        if _REDIRECT <= status < _FAILED:
            reason = f"it answered {status}; set DOWNRIVER_URL to the server's own address"
            raise errors.ServerUnreachableError(self._url, reason)
        if status >= _FAILED:
            raise error_of_response(self._url, status, answer)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as exc:
            reason = f"invalid answer to {method} {path.partition('?')[0]}: {exc}"
            raise errors.ServerError(self._url, reason) from exc

    def _request(
        self, method: str, path: str, body: bytes | None, timeout: float
    ) -> tuple[int, bytes]:
        connection = self._take()
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            try:
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                connection.close()  # the server closed an idle connection: try again
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise errors.ServerUnreachableError(self._url, str(exc) or type(exc).__name__) from exc
        self._idle.append(connection)
        return answer

    def _take(self) -> http.client.HTTPConnection:
        """Return a connection that no other thread uses."""
        try:
            return self._idle.pop()
        except IndexError:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            return kind(self._parts.netloc.rpartition("@")[2])


def error_of_response(url: str, status: int, body: bytes) -> errors.DownriverError:
    """Return the exception for an error response, the same as a local store would raise."""
    try:
        failure = msgspec.json.decode(body, type=_Failure)
    except msgspec.DecodeError:
        failure = _Failure()
    match failure.error:
        case "EntityNotFound":
            error: errors.DownriverError = errors.EntityNotFoundError("", failure.near)
        case "AmbiguousName":
            error = errors.AmbiguousNameError("", failure.candidates)
        case "InvalidRequest" | "InvalidEvent":
            reason = failure.detail.removeprefix(f"{failure.field}: ")
            error = errors.InvalidRequestError(failure.field or "request", reason)
        case "Unauthorized":
            error = errors.UnauthorizedError("this API key is missing or unknown")
        case "Forbidden":
            error = errors.ForbiddenError("", "")
        case "StoreBusy":
            error = errors.StoreBusyError("the server is overloaded")
        case _:
            return errors.ServerError(url, failure.detail or f"HTTP status {status}")
    error.message = failure.detail
    error.args = (failure.detail,)
    return error
