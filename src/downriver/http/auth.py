"""API keys and roles: the one place where they are enforced.

A store without keys serves this machine only. As soon as it has a key, every request needs one.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import time
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread

from downriver.errors import ForbiddenError, InvalidRequestError, UnauthorizedError
from downriver.store import KeyRole, parse_role

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from downriver.service import Lineage
    from downriver.store import ApiKey

T = TypeVar("T")

_CACHE_SECONDS = 2.0
_THREADS = 4


class AccessControl:
    """Checks the API keys of requests to one store. It caches keys for two seconds."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._keys: dict[str, ApiKey | None] = {}
        self._keyed = False
        self._cached_until = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._threads = CapacityLimiter(_THREADS)  # its own: a check never waits for an answer

    async def admit(self, request: Request, needed: KeyRole | None) -> None:
        """Return if the request has the needed role, else raise."""
        if needed is None:
            return
        role, _ = await self.identify(request)
        if role < needed:
            raise ForbiddenError(role.name.lower(), needed.name.lower())

    async def identify(self, request: Request) -> tuple[KeyRole, ApiKey | None]:
        """Return the role of a request and its key; a store without keys needs none."""
        if time.monotonic() > self._cached_until:
            # One request reads the keys. Requests that arrive meanwhile share its result or error.
            self._refreshing = self._refreshing or asyncio.create_task(self._refresh())
            await asyncio.shield(self._refreshing)
        if not self._keyed:
            _check_local(request)
            return KeyRole.ADMIN, None
        key = await self._key(request)
        return parse_role(key.role), key

    async def allows(self, request: Request, needed: KeyRole) -> bool:
        """Whether a request has the needed role."""
        try:
            await self.admit(request, needed)
        except (UnauthorizedError, ForbiddenError):
            return False
        return True

    async def _refresh(self) -> None:
        try:
            self._keyed = await self._run(self._lineage.admin.has_keys)
            self._keys = {}
            self._cached_until = time.monotonic() + _CACHE_SECONDS
        finally:
            self._refreshing = None

    async def _run(self, function: Callable[..., T], *args: str) -> T:
        return await to_thread.run_sync(function, *args, limiter=self._threads)

    async def _key(self, request: Request) -> ApiKey:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or not key:
            raise UnauthorizedError("this server needs an API key")
        keys = self._keys  # another request may replace the attribute
        if key not in keys:
            keys[key] = await self._run(self._lineage.admin.find_key, key)
        known = keys[key]
        if known is None:
            raise UnauthorizedError("this API key is unknown or revoked")
        return known


def _check_local(request: Request) -> None:
    # A web page in the user's browser can reach this port under any host name (DNS rebinding) or
    # post to it without reading the answer. So without keys the Host and Origin headers must name
    # this machine too.
    host = request.headers.get("host")
    local = is_loopback(request.url.hostname or "") if host is None else _is_local(f"//{host}")
    client = request.client.host if request.client else ""
    origin = request.headers.get("origin")
    foreign = origin is not None and not _is_local(origin)
    if not is_loopback(client) or not local or foreign:
        raise UnauthorizedError(
            "without API keys this server accepts requests from its own machine only"
        )


@functools.lru_cache(maxsize=256)
def _is_local(url: str) -> bool:
    """Whether a URL names this machine."""
    try:
        return "@" not in url and is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is the loopback interface of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_bind(host: str, port: int, *, keyed: bool) -> None:
    """Raise if the server may not listen here: without keys on a public address, or a used port."""
    if not keyed and not is_loopback(host):
        raise InvalidRequestError(
            "host",
            f"{host} can be reached from other machines, and the store has no API keys; "
            "create one with `downriver keys create NAME --role admin`, or use 127.0.0.1",
        )
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as exc:
        raise InvalidRequestError(
            "port", f"cannot listen on {host}:{port}: {exc.strerror}"
        ) from exc
