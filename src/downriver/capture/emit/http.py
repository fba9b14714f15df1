"""Events to a collector, over one connection that is kept."""

from __future__ import annotations

import gzip
import http.client
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("downriver")

_WORTH_COMPRESSING = 2_000
_SERVER_FAULT, _REFUSED = 500, 400


class NotDeliveredError(Exception):
    """The collector could not take an event now; it may later."""


def http_sender(url: str, key: str = "", *, timeout: float = 5.0) -> Callable[[list[bytes]], None]:
    """Return what posts events to the collector at `url`."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidRequestError("DOWNRIVER_URL", f"{url!r} is not an http:// or https:// URL")
    return _Connection(parts.scheme, parts.netloc, parts.path.rstrip("/"), key, timeout).send


class _Connection:
    def __init__(self, scheme: str, address: str, base: str, key: str, timeout: float) -> None:
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        self._connection = kind(address.rpartition("@")[2], timeout=timeout)
        self._path = f"{base}/api/v1/lineage"
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def send(self, events: list[bytes]) -> None:
        """Post events one by one; what the collector refuses for good is logged, not sent again."""
        for event in events:
            try:
                status, answer = self._post(event)
            except (OSError, http.client.HTTPException) as exc:
                self._connection.close()
                raise NotDeliveredError(str(exc)) from exc
            if status >= _SERVER_FAULT or status in {401, 403, 404, 408, 429}:
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
