"""What every request handler needs: the façade, limits, and how to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.responses import Response

from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from starlette.requests import Request

    from downriver.service import Lineage


class Context(NamedTuple):
    """Shared by all requests of one application."""

    lineage: Lineage
    max_body: int


def context_of(request: Request) -> Context:
    """Return the context the application was built with."""
    context: Context = request.app.state.context
    return context


def json_response(body: Any, status: int = 200) -> Response:
    """Answer with a value of ours as JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def query_text(request: Request, name: str) -> str:
    """Return a query parameter that must be there."""
    value = request.query_params.get(name, "")
    if not value:
        raise InvalidRequestError(name, "missing")
    return value


def query_number(request: Request, name: str, default: int | None, top: int) -> int | None:
    """Return a query parameter that is a whole number from 0 to `top`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > top:
        raise InvalidRequestError(name, f"{text!r} is not a whole number from 0 to {top}")
    return int(text)
