"""Requests to one Downriver server, over connections that are kept."""

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
WRITE_TIMEOUT = 10.0  # whoever registers may be a job at work: then it is spooled
_FAILED = 400


class _Failure(msgspec.Struct):
    """The one shape of error body."""

    error: str = ""
    detail: str = ""
    field: str | None = None
    near: list[str] = []
    candidates: list[str] = []


class Connection:
    """Asks a server. Safe to share between threads."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._parts = urlsplit(self._url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: deque[http.client.HTTPConnection] = deque()

    def renew(self) -> None:
        """Begin with connections of a process's own."""
        keep_inherited(*self._idle)
        self._idle = deque()

    def close(self) -> None:
        """Close every connection that is not in use."""
        while self._idle:
            self._idle.pop().close()

    def get(self, path: str, asked: dict[str, Any], kind: type[T]) -> T:
        """Return the answer to a question; what is None is not asked."""
        given = {name: str(value) for name, value in asked.items() if value is not None}
        return self._ask("GET", f"{path}?{urlencode(given)}", None, kind, READ_TIMEOUT)

    def post(self, path: str, body: Any, kind: type[T], timeout: float = WRITE_TIMEOUT) -> T:
        """Return the answer to what is sent."""
        return self._ask("POST", path, msgspec.json.encode(body), kind, timeout)

    def _ask(self, method: str, path: str, body: bytes | None, kind: type[T], timeout: float) -> T:
        status, answer = self._request(method, self._parts.path + path, body, timeout)
        if status >= _FAILED:
            raise _error_of(self._url, status, answer)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as exc:
            reason = f"its answer to {method} {path.partition('?')[0]} cannot be read: {exc}"
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
                connection.close()  # an idle connection the server closed: once more
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise errors.ServerUnreachableError(self._url, str(exc) or type(exc).__name__) from exc
        self._idle.append(connection)
        return answer

    def _take(self) -> http.client.HTTPConnection:
        """Return a connection no one else uses."""
        try:
            return self._idle.pop()
        except IndexError:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            return kind(self._parts.netloc.rpartition("@")[2])


def _error_of(url: str, status: int, body: bytes) -> errors.DownriverError:
    """Return the error that the server tells of, as it would be raised here."""
    try:
        told = msgspec.json.decode(body, type=_Failure)
    except msgspec.DecodeError:
        told = _Failure()
    match told.error:
        case "EntityNotFound":
            found: errors.DownriverError = errors.EntityNotFoundError("", told.near)
        case "AmbiguousName":
            found = errors.AmbiguousNameError("", told.candidates)
        case "InvalidRequest" | "InvalidEvent":
            reason = told.detail.removeprefix(f"{told.field}: ")
            found = errors.InvalidRequestError(told.field or "request", reason)
        case "Unauthorized":
            found = errors.UnauthorizedError("this API key is missing or unknown")
        case "Forbidden":
            found = errors.ForbiddenError("", "")
        case "StoreBusy":
            found = errors.StoreBusyError("the server is overloaded")
        case _:
            return errors.ServerError(url, told.detail or f"it answered {status}")
    found.message = told.detail
    found.args = (told.detail,)
    return found
