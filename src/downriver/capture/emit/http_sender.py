"""Events to a collector, over one connection that is kept."""

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

_WORTH_COMPRESSING = 2_000
_SERVER_FAULT, _REFUSED = 500, 400
_MAY_CHANGE = frozenset({401, 403, 404, 408, 429})  # with a key, a route or time


class NotDeliveredError(Exception):
    """The collector could not take an event now; it may later."""


class HttpSender:
    """Posts events to the collector at `url`, one by one, over one connection."""

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
        """Begin with a connection of a forked process's own."""
        keep_inherited(self._connection)
        self._connection = self._connect()

    def close(self) -> None:
        """Close the connection; sending again opens another."""
        self._connection.close()

    def __call__(self, events: Sequence[Event | bytes]) -> None:
        """Post events; what the collector refuses for good is logged, and not sent again."""
        for event in events:
            try:
                status, answer = self._post(raw_bytes(event))
            except (OSError, http.client.HTTPException) as exc:
                self.close()
                raise NotDeliveredError(str(exc)) from exc
            if status >= _SERVER_FAULT or status in _MAY_CHANGE:
                raise NotDeliveredError(f"the collector answered {status}: {answer[:200]}")
            if status >= _REFUSED:
                log.warning("the collector refused an event (%s): %s", status, answer[:500])

    def _post(self, event: bytes) -> tuple[int, str]:
        headers = self._headers
        if len(event) > _WORTH_COMPRESSING:
            event = gzip.compress(event, 1)
            headers = {**headers, "Content-Encoding": "gzip"}
        try:
            self._connection.request("POST", self._path, event, headers)
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection.close()  # an idle connection the server closed: once more
            self._connection.request("POST", self._path, event, headers)
            response = self._connection.getresponse()
        return response.status, response.read().decode(errors="replace")
