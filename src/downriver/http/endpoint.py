"""One row of the table of routes: a path, who may use it, and its OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from starlette.routing import Match, Route, Router

from downriver.http.errors import ErrorBody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Lifespan, Receive, Scope, Send

    from downriver.store import KeyRole


class Endpoint(NamedTuple):
    """A route, with the types and statuses of its OpenAPI description."""

    method: str
    path: str
    handler: Callable[[Request], Awaitable[Response]]
    role: KeyRole | None
    statuses: dict[int, type[Any] | None]
    query: tuple[str, ...] = ()
    body: type[Any] | None = None
    optional: tuple[str, ...] = ()  # names of required query parameters
    of_events: bool = False  # the answer depends only on the events of the store and the URL
    whole_store: bool = False  # rejects keys that are limited to namespaces


class EncodedRoute(Route):
    """A route whose parameters may contain slashes, as in `/namespaces/s3%3A%2F%2Flake/datasets`.

    It matches the path before percent-decoding, so that a slash in a name ends no segment.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the encoded path and decode the parameters."""
        raw = scope.get("raw_path")
        if scope["type"] != "http" or raw is None:
            return super().matches(scope)
        match, child = super().matches({**scope, "path": raw.decode("ascii", "replace")})
        if match is not Match.NONE:
            child["path_params"] = {k: unquote(v) for k, v in child["path_params"].items()}
        return match, child


class LookupRouter(Router):
    """A router that finds a path without parameters in a dictionary.

    Starlette tries the routes one after another, which takes a tenth of the time of a short trace.
    """

    def __init__(self, routes: Sequence[Route], lifespan: Lifespan[Any]) -> None:
        super().__init__(routes, lifespan=lifespan)
        self._by_path: dict[str, list[Route]] = {}
        for route in routes:
            if not route.param_convertors:
                self._by_path.setdefault(route.path, []).append(route)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the route of the path; without one, use Starlette's lookup."""
        if scope["type"] == "http":
            path = scope["path"].removesuffix("/")  # the client of Atlas sends a slash at the end
            if path != scope["path"] and path in self._by_path:
                scope = {**scope, "path": path, "raw_path": path.encode()}
            for route in self._by_path.get(scope["path"], ()):
                match, child_scope = route.matches(scope)
                if match is Match.FULL:
                    scope.update({"router": self, "route": route, **child_scope})
                    await route.handle(scope, receive, send)
                    return
        await super().app(scope, receive, send)


def answers(kind: type[Any] | None, *errors: int, status: int = 200) -> dict[int, type[Any] | None]:
    """Return the statuses of a route: its answer, and the errors with an `ErrorBody`."""
    return {status: kind, **dict.fromkeys(errors, ErrorBody)}


NAMED = (400, 404, 409)  # errors of a route that resolves a name
