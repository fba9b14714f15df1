"""Who asks, and what the server is configured to do: role, keys, policy, audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver import __version__
from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import context_of, json_response, run_read
from downriver.impact import PolicyRule, explain_policy
from downriver.openlineage.wire import render_time
from downriver.store import KeyRole, Verification

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.store import ApiKey


class Me(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The role of a request. Without keys, every request from this machine is an admin's."""

    role: str
    keys_required: bool
    version: str
    key_id: str | None = None


class ServerPolicy(msgspec.Struct, kw_only=True):
    """The policy that decides when a request has none; `source` is its file, None for defaults."""

    source: str | None
    rules: list[PolicyRule]


class KeyInfo(msgspec.Struct, kw_only=True):
    """An API key without its secret."""

    name: str
    role: str
    created_at: str
    revoked_at: str | None


class Keys(msgspec.Struct, kw_only=True):
    """All API keys, revoked ones too."""

    keys: list[KeyInfo]


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


async def get_policy(request: Request) -> Response:
    """Return the policy of `/v1/preview` with its rules explained."""
    policy, source = await run_read(request, context_of(request).lineage.impact.policy)
    return json_response(ServerPolicy(source=source, rules=explain_policy(policy)))


async def get_keys(request: Request) -> Response:
    """Return the API keys without their secrets."""
    keys = await run_read(request, context_of(request).lineage.admin.list_keys)
    return json_response(Keys(keys=[_key_info(key) for key in keys]))


def _key_info(key: ApiKey) -> KeyInfo:
    return KeyInfo(
        name=key.name,
        role=key.role,
        created_at=render_time(key.created_at),
        revoked_at=None if key.revoked_at is None else render_time(key.revoked_at),
    )


async def get_audit(request: Request) -> Response:
    """Recompute the hash chain of the log, and name the first entry that was altered."""
    return json_response(await run_read(request, context_of(request).lineage.admin.verify))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/v1/me", get_me, KeyRole.READER, answers(Me)),
    Endpoint("GET", "/v1/policy", get_policy, KeyRole.READER, answers(ServerPolicy)),
    Endpoint("GET", "/v1/keys", get_keys, KeyRole.ADMIN, answers(Keys)),
    Endpoint("GET", "/v1/audit", get_audit, KeyRole.ADMIN, answers(Verification)),
)
