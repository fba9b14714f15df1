"""Who may do what: the one place where keys and roles are enforced.

A store without keys serves this machine only. With the first key, every request needs one.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from downriver.errors import ForbiddenError, InvalidRequestError, UnauthorizedError

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.service import Lineage
    from downriver.store import KeyRole

_REMEMBERED_SECONDS = 2.0


class AccessControl:
    """Admits requests to one store. What it knows of keys is at most two seconds old."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._roles: dict[str, KeyRole | None] = {}
        self._keyed = False
        self._known_until = 0.0
        self._learning: asyncio.Task[None] | None = None

    async def admit(self, request: Request, needed: KeyRole | None) -> None:
        """Return if the request may go on, or raise what to answer."""
        if needed is None:
            return
        if time.monotonic() > self._known_until:
            # One asks the store. Whoever comes meanwhile hears what it hears, also that it fails.
            self._learning = self._learning or asyncio.create_task(self._learn())
            await asyncio.shield(self._learning)
        if not self._keyed:
            _check_local(request)
            return
        role = await self._role(request)
        if role < needed:
            raise ForbiddenError(role.name.lower(), needed.name.lower())

    async def allows(self, request: Request, needed: KeyRole) -> bool:
        """Tell whether a request could go on where this role is needed."""
        try:
            await self.admit(request, needed)
        except (UnauthorizedError, ForbiddenError):
            return False
        return True

    async def _learn(self) -> None:
        try:
            self._keyed = await run_in_threadpool(self._lineage.has_keys)
            self._roles = {}
            self._known_until = time.monotonic() + _REMEMBERED_SECONDS
        finally:
            self._learning = None

    async def _role(self, request: Request) -> KeyRole:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or not key:
            raise UnauthorizedError("this server needs an API key")
        known = self._roles  # which another request may replace
        if key not in known:
            known[key] = await run_in_threadpool(self._lineage.find_role, key)
        role = known[key]
        if role is None:
            raise UnauthorizedError("this API key is unknown or revoked")
        return role


def _check_local(request: Request) -> None:
    # A page in the user's browser can reach this port under a name of its choosing (DNS
    # rebinding) or post to it blindly, so without keys both the name asked for and the page's own
    # must be this machine's too.
    asked = request.headers.get("host")
    ours = is_loopback(request.url.hostname or "") if asked is None else _is_ours(f"//{asked}")
    client = request.client.host if request.client else ""
    origin = request.headers.get("origin")
    foreign = origin is not None and not _is_ours(origin)
    if not is_loopback(client) or not ours or foreign:
        raise UnauthorizedError("without API keys this server answers only its own machine")


@functools.lru_cache(maxsize=256)
def _is_ours(url: str) -> bool:
    """Tell whether a URL is of this machine."""
    try:
        return "@" not in url and is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_bind(host: str, port: int, *, keyed: bool) -> None:
    """Refuse to listen to other machines before there are keys, and where another server does."""
    if not keyed and not is_loopback(host):
        raise InvalidRequestError(
            "host",
            f"{host} can be reached from other machines and there are no API keys yet; "
            "make one with `downriver keys create NAME --role admin`, or use 127.0.0.1",
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
