"""Posts events to a collector over one kept connection."""

from __future__ import annotations

import gzip
import http.client
import logging
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from downriver.capture.emit.guard import guarded
from downriver.errors import InvalidRequestError
from downriver.fork_safety import keep_inherited, renew_in_child
from downriver.openlineage.wire import raw_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.openlineage.wire import Event

log = logging.getLogger("downriver")

_COMPRESS_FROM = 2_000  # bytes
_SERVER_ERROR, _REJECTED, _REDIRECT = 500, 400, 300
_RETRYABLE = frozenset({401, 403, 404, 408, 429})  # another key, route or time may help
_KEEPS_METHOD, _MAY_CHANGE_METHOD = frozenset({307, 308}), frozenset({301, 302})
_PERMANENT = frozenset({301, 308})
_MOST_REDIRECTS = 5


class NotDeliveredError(Exception):
    """The collector could not accept an event now; sending it again may succeed."""


class CollectorEndpoint(NamedTuple):
    """Where events are posted."""

    secure: bool
    host: str  # with the port, when the URL has one
    path: str

    @classmethod
    def of(cls, url: str) -> CollectorEndpoint | None:
        """Return the endpoint of a URL, or None if it is no URL of HTTP."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return None
        query = f"?{parts.query}" if parts.query else ""
        return cls(parts.scheme == "https", parts.netloc.rpartition("@")[2], parts.path + query)

    @property
    def url(self) -> str:
        """The endpoint as a URL."""
        return f"{'https' if self.secure else 'http'}://{self.host}{self.path}"

    @property
    def hostname(self) -> str | None:
        """The host without its port, in lower case."""
        return urlsplit(self.url).hostname

    def redirected(self, status: int, location: str) -> CollectorEndpoint | None:
        """Return where a redirect leads, or None if the event must not be posted there.

        A browser repeats a 301 or 302 as GET, so those are followed only where they lead to
        HTTPS on the same host. No redirect from HTTPS to HTTP is followed.
        """
        target = CollectorEndpoint.of(urljoin(self.url, location)) if location else None
        if target is None or (self.secure and not target.secure):
            return None
        if status in _KEEPS_METHOD:
            return target
        same_host_by_https = target.secure and target.hostname == self.hostname
        return target if status in _MAY_CHANGE_METHOD and same_host_by_https else None

    def may_have_key_of(self, configured: CollectorEndpoint) -> bool:
        """Whether the key for the configured collector may be sent to this endpoint."""
        same_name = self.hostname == configured.hostname
        return self.host == configured.host or (same_name and self.secure)


class _Response(NamedTuple):
    status: int
    location: str
    text: str


class HttpSender:
    """Posts events to the collector at `url`, one by one, over one kept connection.

    `reject` is called with each event that the collector rejects, and the reason. A rejected event
    is not sent again.
    """

    def __init__(
        self, url: str, key: str = "", *, reject: Callable[[bytes, str], None], timeout: float = 5.0
    ) -> None:
        endpoint = CollectorEndpoint.of(url)
        if endpoint is None:
            raise InvalidRequestError("DOWNRIVER_URL", f"{url!r} is not an http:// or https:// URL")
        self._reject = reject
        self._timeout = timeout
        path = urlsplit(url).path.rstrip("/")
        self._endpoint = endpoint._replace(path=f"{path}/api/v1/lineage")
        self._configured = self._endpoint
        self._key = key
        self._open()
        renew_in_child(self)

    def renew(self) -> None:
        """Open a new connection in a forked process."""
        keep_inherited(self._connection)
        self._open()

    def close(self) -> None:
        """Close the connection; the next event opens a new one."""
        self._connection.close()

    def __call__(self, events: Sequence[Event | bytes]) -> None:
        """Post events; an event that the collector rejects does not hold up the next ones."""
        for event in events:
            try:
                response = self._deliver(raw_bytes(event))
            except (OSError, http.client.HTTPException) as exc:
                self.close()
                raise NotDeliveredError(str(exc)) from exc
            status, text = response.status, response.text
            if _REDIRECT <= status < _REJECTED:
                raise NotDeliveredError(
                    f"the collector redirects to {response.location!r} ({status}), and this is not"
                    " followed; set DOWNRIVER_URL to the collector's own address"
                )
            if status >= _SERVER_ERROR or status in _RETRYABLE:
                raise NotDeliveredError(f"the collector answered {status}: {text[:200]}")
            if status >= _REJECTED:
                log.warning("the collector rejected an event (%s): %s", status, text[:500])
                with guarded("keeping a rejected event"):
                    self._reject(raw_bytes(event), f"{status}: {text[:500]}")

    def _deliver(self, event: bytes) -> _Response:
        """Post an event and follow redirects. A permanent redirect also applies to later events."""
        configured = self._endpoint
        permanent = True
        try:
            response = self._post(event)
            for _ in range(_MOST_REDIRECTS):
                target = self._endpoint.redirected(response.status, response.location)
                if target is None:
                    break
                permanent = permanent and response.status in _PERMANENT
                self._move(target)
                response = self._post(event)
        except BaseException:
            self._move(configured)
            raise
        if not permanent or response.status >= _REDIRECT:
            self._move(configured)
        return response

    def _move(self, endpoint: CollectorEndpoint) -> None:
        """Post to another endpoint from now on."""
        if endpoint[:2] != self._endpoint[:2]:
            self.close()
            self._endpoint = endpoint
            self._open()
        self._endpoint = endpoint

    def _open(self) -> None:
        connect = (
            http.client.HTTPSConnection if self._endpoint.secure else http.client.HTTPConnection
        )
        self._connection: http.client.HTTPConnection = connect(
            self._endpoint.host, timeout=self._timeout
        )

    def _post(self, event: bytes) -> _Response:
        headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if self._key and self._endpoint.may_have_key_of(self._configured):
            headers["Authorization"] = f"Bearer {self._key}"
        if len(event) > _COMPRESS_FROM:
            event = gzip.compress(event, 1)
            headers["Content-Encoding"] = "gzip"
        try:
            self._connection.request("POST", self._endpoint.path, event, headers)
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection.close()  # the server closed the idle connection: retry once
            self._connection.request("POST", self._endpoint.path, event, headers)
            response = self._connection.getresponse()
        text = response.read().decode(errors="replace")
        return _Response(response.status, response.getheader("Location", ""), text)
