"""One row of the table of routes: a path, who may use it, and its OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from starlette.routing import Match, Route

from downriver.http.errors import ErrorBody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

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
    optional: tuple[str, ...] = ()  # of the query parameters that other routes require
    of_events: bool = False  # the answer depends only on the events of the store and the URL
    whole_store: bool = False  # refused to a key that is limited to namespaces


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


def answers(kind: type[Any] | None, *errors: int, status: int = 200) -> dict[int, type[Any] | None]:
    """Return the statuses of a route: one answer, and the errors that have an `ErrorBody`."""
    return {status: kind, **dict.fromkeys(errors, ErrorBody)}


NAMED = (400, 404, 409)  # errors of a route that resolves a name
