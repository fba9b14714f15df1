"""One row of the table of routes: a path, who may use it, and its OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.http.errors import ErrorBody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

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


def answers(kind: type[Any] | None, *errors: int, status: int = 200) -> dict[int, type[Any] | None]:
    """Return the statuses of a route: one answer, and the errors that have an `ErrorBody`."""
    return {status: kind, **dict.fromkeys(errors, ErrorBody)}


NAMED = (400, 404, 409)  # errors of a route that resolves a name
