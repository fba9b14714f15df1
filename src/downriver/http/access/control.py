"""API keys, tokens and roles: the one place where they are enforced.

A store without keys serves this machine and the allowed hosts only. As soon as it has a key, or an
issuer of tokens is set, every request needs one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread

from downriver.errors import ForbiddenError, UnauthorizedError
from downriver.http.access.hosts import AllowedHosts
from downriver.http.access.oidc import TokenVerifier, is_token
from downriver.http.access.refusals import PRINCIPAL, RefusalLog
from downriver.model.access import ACTOR, LOCAL_ACTOR
from downriver.openlineage.wire import render_time
from downriver.store import KeyRole, parse_role

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from downriver.http.endpoint import Endpoint
    from downriver.model.access import Scope
    from downriver.service import Lineage
    from downriver.store import ApiKey

T = TypeVar("T")

_CACHE_SECONDS = 2.0
_MOST_CACHED = 10_000
_THREADS = 4


class Principal(NamedTuple):
    """The sender of a request: a key or token with its role and namespaces, or none."""

    id: str
    role: KeyRole
    scope: Scope | None = None
    keyed: bool = True
    expires_at: int | None = None  # µs since the epoch


LOCAL = Principal(LOCAL_ACTOR, KeyRole.ADMIN, keyed=False)


class AccessControl:
    """Checks the requests to one store. It caches keys for two seconds."""

    def __init__(
        self,
        lineage: Lineage,
        hosts: AllowedHosts | None = None,
        tokens: TokenVerifier | None = None,
    ) -> None:
        self._lineage = lineage
        self._hosts = hosts or AllowedHosts()
        self._tokens = tokens
        self.refusals = RefusalLog(lineage)
        self._keys: dict[str, ApiKey | None] = {}
        self._keyed = False
        self._cached_until = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._threads = CapacityLimiter(_THREADS)  # separate from the threads of answers

    async def admit(self, request: Request, endpoint: Endpoint) -> Principal | None:
        """Return the sender of a permitted request, else raise. None for open routes."""
        if endpoint.role is None:
            return None
        principal = await self.identify(request)
        _require(principal, endpoint)
        ACTOR.set(principal.id)  # in the context of this request, for the audit log
        return principal

    async def identify(self, request: Request) -> Principal:
        """Return the sender of a request. The result is cached for the request."""
        known: Principal | None = request.scope.get(PRINCIPAL)
        if known is None:
            known = request.scope[PRINCIPAL] = await self._identify(request)
        return known

    def forget_keys(self) -> None:
        """Read the keys again at the next request, because a key was created or revoked."""
        self._cached_until = 0.0

    async def _identify(self, request: Request) -> Principal:
        if time.monotonic() > self._cached_until:
            # One request reads the keys. Requests that arrive meanwhile share its result or error.
            self._refreshing = self._refreshing or asyncio.create_task(self._refresh())
            await asyncio.shield(self._refreshing)
        if not self._keyed and self._tokens is None:
            self._hosts.check(request)
            return LOCAL
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not secret:
            raise UnauthorizedError("this server needs an API key")
        if self._tokens is not None and is_token(secret):
            token = await self._run(self._tokens.verify, secret)
            return Principal(token.subject, token.role, token.scope, expires_at=token.expires_at)
        return _principal_of(await self._key(secret))

    async def _refresh(self) -> None:
        try:
            self._keyed = await self._run(self._lineage.admin.has_keys)
            self._keys = {}
            self._cached_until = time.monotonic() + _CACHE_SECONDS
        finally:
            self._refreshing = None

    async def _run(self, function: Callable[..., T], *args: str) -> T:
        return await to_thread.run_sync(function, *args, limiter=self._threads)

    async def _key(self, secret: str) -> ApiKey:
        keys = self._keys  # another request may replace the attribute
        if secret not in keys:
            if len(keys) >= _MOST_CACHED:
                keys.clear()
            keys[secret] = await self._run(self._lineage.admin.find_key, secret)
        known = keys[secret]
        if known is None:
            raise UnauthorizedError("this API key is unknown or revoked")
        return known


def _principal_of(key: ApiKey) -> Principal:
    if key.expires_at is not None and key.expires_at <= time.time_ns() // 1000:
        raise UnauthorizedError(
            f"the API key {key.name!r} expired at {render_time(key.expires_at)}; create a new one"
        )
    return Principal(key.name, parse_role(key.role), key.scope, expires_at=key.expires_at)


def _require(principal: Principal, endpoint: Endpoint) -> None:
    """Raise if the role or the namespaces of a request do not allow its route."""
    needed = endpoint.role
    if needed is not None and principal.role < needed:
        raise ForbiddenError.of_role(principal.role.name.lower(), needed.name.lower())
    if endpoint.whole_store and principal.scope is not None:
        raise ForbiddenError.of_whole_store(
            f"{endpoint.method} {endpoint.path}", principal.scope.patterns
        )
