"""Posts events to a collector over one kept connection."""

from __future__ import annotations

import gzip
import http.client
import logging
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from downriver.errors import InvalidRequestError
from downriver.fork_safety import keep_inherited, renew_in_child
from downriver.openlineage.wire import raw_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.openlineage.wire import Event

log = logging.getLogger("downriver")

_COMPRESS_FROM = 2_000  # bytes
_SERVER_ERROR, _REJECTED = 500, 400
_RETRYABLE = frozenset({401, 403, 404, 408, 429})  # another key, route or time may help


class NotDeliveredError(Exception):
    """The collector could not accept an event now; sending it again may succeed."""


class HttpSender:
    """Posts events to the collector at `url`, one by one, over one kept connection."""

    def __init__(self, url: str, key: str = "", *, timeout: float = 5.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidRequestError("DOWNRIVER_URL", f"{url!r} is not an http:// or https:// URL")
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connect = partial(kind, parts.netloc.rpartition("@")[2], timeout=timeout)
        self._connection: http.client.HTTPConnection = self._connect()
        self._path = f"{parts.path.rstrip('/')}/api/v1/lineage"
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

        renew_in_child(self)

    def renew(self) -> None:
        """Open a new connection in a forked process."""
        keep_inherited(self._connection)
        self._connection = self._connect()

    def close(self) -> None:
        """Close the connection; the next event opens a new one."""
        self._connection.close()

    def __call__(self, events: Sequence[Event | bytes]) -> None:
        """Post events; an event that the collector rejects is logged and not sent again."""
        for event in events:
            try:
                status, answer = self._post(raw_bytes(event))
            except (OSError, http.client.HTTPException) as exc:
                self.close()
                raise NotDeliveredError(str(exc)) from exc
            if status >= _SERVER_ERROR or status in _RETRYABLE:
                raise NotDeliveredError(f"the collector answered {status}: {answer[:200]}")
            if status >= _REJECTED:
                log.warning("the collector rejected an event (%s): %s", status, answer[:500])

    def _post(self, event: bytes) -> tuple[int, str]:
        headers = self._headers
        if len(event) > _COMPRESS_FROM:
            event = gzip.compress(event, 1)
            headers = {**headers, "Content-Encoding": "gzip"}
        try:
            self._connection.request("POST", self._path, event, headers)
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection.close()  # the server closed the idle connection: retry once
            self._connection.request("POST", self._path, event, headers)
            response = self._connection.getresponse()
        return response.status, response.read().decode(errors="replace")
