"""POST requests of JSON to configured services."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping


class PostFailedError(Exception):
    """A request failed. The text contains no secret: neither the URL nor the answer."""


class HttpPost:
    """Sends POST requests to one URL, through the proxies of the environment."""

    def __init__(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidRequestError("url", "is not an http:// or https:// URL")
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if parts.username:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._headers.update(headers or {})
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def send(self, body: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Send a body and return the HTTP status."""
        request = urllib.request.Request(  # noqa: S310 — http or https, as checked above
            self._url, body, {**self._headers, **(headers or {})}, method="POST"
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                status: int = answer.status
                return status
        except urllib.error.HTTPError as exc:
            exc.close()
            raise PostFailedError(f"answered {exc.code}") from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise PostFailedError(failure_reason(exc)) from None  # the text may contain the URL


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, because a redirected POST becomes a GET."""

    def redirect_request(self, *arguments: Any) -> None:
        """Follow no redirect."""


def failure_reason(exc: Exception) -> str:
    """Return the reason of a failure without text that may contain a secret."""
    if isinstance(exc, urllib.error.URLError) and isinstance(exc.reason, Exception):
        return failure_reason(exc.reason)
    reason = exc.strerror if isinstance(exc, OSError) else None
    return f"{type(exc).__name__}: {reason}" if reason else type(exc).__name__
