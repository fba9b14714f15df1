"""Requests with JSON to the REST APIs of other systems."""

from __future__ import annotations

import base64
import http.client
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import msgspec

from downriver.errors import (
    InvalidRequestError,
    ServerError,
    ServerUnreachableError,
    describe_failure,
)

_SECONDS = 30.0


class RestApi:
    """The REST API at a URL. `key` is a bearer token, or `user:password` for basic authentication.

    A user and a password in the URL are used as the key. They do not appear in messages.
    """

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequestError("URL", f"{url!r} is not an http:// or https:// URL")
        login, _, host = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=host, query="", fragment="").geturl().rstrip("/")
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        key = key or login
        basic = f"Basic {base64.b64encode(key.encode()).decode()}"
        self._authorization = basic if ":" in key else f"Bearer {key}" if key else ""

    def get(self, path: str) -> Any:
        """Return the JSON at a path below the URL."""
        return self._call("GET", path, None)

    def post(self, path: str, body: object, **headers: str) -> Any:
        """Post JSON to a path below the URL, and return the JSON of the response."""
        return self._call("POST", path, msgspec.json.encode(body), headers)

    def _call(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str] | None = None
    ) -> Any:
        request = urllib.request.Request(  # noqa: S310 — http or https, as checked above
            self.url + path, data=body, method=method, headers={**self._headers, **(headers or {})}
        )
        if self._authorization:  # not sent to the target of a redirect, which may be another host
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
                content = response.read()
        except urllib.error.HTTPError as exc:
            with exc:
                text = exc.read(300).decode(errors="replace")
            raise ServerError(self.url + path, f"status {exc.code}: {text}") from exc
        except (OSError, http.client.HTTPException) as exc:
            raise ServerUnreachableError(self.url + path, describe_failure(exc)) from exc
        try:
            return msgspec.json.decode(content) if content.strip() else None
        except msgspec.DecodeError as exc:
            raise ServerError(self.url + path, f"the response is not JSON: {exc}") from exc
