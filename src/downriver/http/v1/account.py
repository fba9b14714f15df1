"""Who asks: the role and the key of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver import __version__
from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import context_of, json_response
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class Me(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The role of a request. Without keys, every request from this machine is an admin's."""

    role: str
    keys_required: bool
    version: str
    key_id: str | None = None


async def get_me(request: Request) -> Response:
    """Return the role of the request's key, and the version of the server."""
    role, key = await context_of(request).access.identify(request)
    return json_response(
        Me(
            role=role.name.lower(),
            keys_required=key is not None,
            version=__version__,
            key_id=None if key is None else key.name,
        )
    )


ENDPOINTS: tuple[Endpoint, ...] = (Endpoint("GET", "/v1/me", get_me, KeyRole.READER, answers(Me)),)
