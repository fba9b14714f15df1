"""Host names and addresses under which a server without keys accepts requests."""

from __future__ import annotations

import functools
import ipaddress
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from downriver import settings
from downriver.errors import InvalidRequestError, UnauthorizedError

if TYPE_CHECKING:
    from starlette.requests import Request


class AllowedHosts:
    """The allowed host names of a server without keys, in addition to those of this machine."""

    def __init__(self, names: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> None:
        self._names = frozenset(name.casefold() for name in names)
        self._origins = frozenset(origin.casefold() for origin in origins)

    @classmethod
    def from_settings(cls) -> AllowedHosts:
        """Return the names in the settings."""
        names = settings.read_list(settings.ALLOWED_HOSTS)
        for name in names:
            if "/" in name or "*" in name or _host_of(name) is None:
                raise InvalidRequestError(
                    settings.ALLOWED_HOSTS.name, f"{name!r} is not a host name such as marquez"
                )
        return cls(names, settings.read_list(settings.CORS_ORIGINS))

    def check(self, request: Request) -> None:
        """Raise if a request without keys may not be answered.

        A web page in the user's browser can reach this port under any host name (DNS rebinding) or
        post to it without reading the answer. So the Host and Origin headers must name this machine
        or an allowed host, too.
        """
        host = request.headers.get("host")
        name = request.url.hostname if host is None else _host_of(host)
        origin = request.headers.get("origin")
        if origin is not None and not self._allows_origin(origin):
            raise UnauthorizedError(
                f"the page {origin[:200]!r} may not use a server without API keys; create a key, or"
                " add its host to DOWNRIVER_ALLOWED_HOSTS"
            )
        if name is None or not self._allows(name):
            shown = "" if name is None else f" {name[:200]!r}"
            raise UnauthorizedError(
                f"a server without API keys may not be called by the host name{shown}; create a"
                " key, or set DOWNRIVER_ALLOWED_HOSTS to the names that clients use"
            )
        client = request.client.host if request.client else ""
        if not self._names and not is_loopback(client):
            raise UnauthorizedError(
                "without API keys this server accepts requests from its own machine only; create a"
                " key, or set DOWNRIVER_ALLOWED_HOSTS to the names that clients use"
            )

    def _allows(self, name: str) -> bool:
        return is_loopback(name) or name.casefold() in self._names

    def _allows_origin(self, origin: str) -> bool:
        if origin.casefold() in self._origins:
            return True
        name = _host_of_url(origin)
        return name is not None and self._allows(name)

    def __bool__(self) -> bool:
        return bool(self._names)


def _host_of(host: str) -> str | None:
    """Return the name in a Host header, without the port; None if it is not a host."""
    return _host_of_url(f"//{host}")


@functools.lru_cache(maxsize=256)
def _host_of_url(url: str) -> str | None:
    try:
        return None if "@" in url else urlsplit(url).hostname
    except ValueError:
        return None


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
    """Raise if the server may not listen here: open to other machines, or on a used port."""
    if not keyed and not is_loopback(host) and not AllowedHosts.from_settings():
        raise InvalidRequestError(
            "host",
            f"{host} can be reached from other machines, and the store has no API keys; "
            "create one with `downriver keys create NAME --role admin`, set "
            "DOWNRIVER_ALLOWED_HOSTS to the host names that clients of a closed network use, or "
            "use 127.0.0.1",
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
