"""The sender of a request and the configuration of the server: role, keys, policy, audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver import __version__
from downriver.errors import InvalidRequestError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import (
    context_of,
    json_response,
    query_number,
    read_struct,
    run_read,
)
from downriver.impact import PolicyRule, explain_policy
from downriver.openlineage.wire import render_time
from downriver.service.govern import parse_since
from downriver.service.session import now
from downriver.store import AuditFilter, KeyRole, Verification

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.store import ApiKey, AuditEntry

_MOST_ENTRIES = 1_000
_LARGEST_ID = 999_999_999


class Me(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The role of a request. Without keys, every request from this machine is an admin's.

    A key with `namespaces` reads and writes only entities in them.
    """

    role: str
    keys_required: bool
    version: str
    key_id: str | None = None
    namespaces: list[str] = []
    expires_at: str | None = None


class ServerPolicy(msgspec.Struct, kw_only=True):
    """The policy that decides when a request has none; `source` is its file, None for defaults."""

    source: str | None
    rules: list[PolicyRule]


class KeyInfo(msgspec.Struct, kw_only=True):
    """An API key without its secret. Without `namespaces` it is not limited to any."""

    name: str
    role: str
    created_at: str
    revoked_at: str | None
    expires_at: str | None
    namespaces: list[str]


class Keys(msgspec.Struct, kw_only=True):
    """All API keys, revoked ones too."""

    keys: list[KeyInfo]


class NewKey(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An API key to create. `expires` is a duration, such as 90d, 12h or 4w, or a time."""

    name: str
    role: str = "writer"
    namespaces: list[str] = []
    expires: str | None = None


class CreatedKey(msgspec.Struct, kw_only=True):
    """A new API key. `key` is shown only now."""

    name: str
    role: str
    key: str


class RevokedKey(msgspec.Struct, kw_only=True):
    """An API key that was revoked."""

    name: str


class AuditRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Identical actions of one actor within one minute. `actor` is empty if no key was valid."""

    id: int
    actor: str
    action: str
    target: str
    first_at: str
    last_at: str
    count: int
    detail: str = ""
    first_seq: int | None = None
    last_seq: int | None = None


class AuditPage(msgspec.Struct, kw_only=True):
    """Entries of the audit log, the newest first. `next_cursor` is `cursor` of the next page."""

    entries: list[AuditRecord]
    next_cursor: int | None = None


async def get_me(request: Request) -> Response:
    """Return the role of the request's key, and the version of the server."""
    principal = await context_of(request).access.identify(request)
    scope, expires_at = principal.scope, principal.expires_at
    return json_response(
        Me(
            role=principal.role.name.lower(),
            keys_required=principal.keyed,
            version=__version__,
            key_id=principal.id if principal.keyed else None,
            namespaces=[] if scope is None else list(scope.patterns),
            expires_at=None if expires_at is None else render_time(expires_at),
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
        expires_at=None if key.expires_at is None else render_time(key.expires_at),
        namespaces=list(key.namespaces),
    )


async def post_key(request: Request) -> Response:
    """Create an API key: `{"name": …, "role": …, "namespaces": […], "expires": "90d"}`."""
    context = context_of(request)
    principal = await context.access.identify(request)
    asked = await read_struct(request, NewKey)
    if not principal.keyed and asked.role != "admin" and not context.lineage.admin.has_keys():
        # The next request needs a key, and only an admin's can create others.
        raise InvalidRequestError("role", "the first key of a store must have the role admin")
    key = await run_in_threadpool(
        context.lineage.admin.create_key,
        asked.name,
        asked.role,
        namespaces=asked.namespaces,
        expires=asked.expires,
    )
    context.access.forget_keys()
    created = json_response(CreatedKey(name=asked.name, role=asked.role, key=key), 201)
    created.headers["Cache-Control"] = "no-store"
    return created


async def delete_key(request: Request) -> Response:
    """Revoke an API key. Every server of the store rejects it within two seconds."""
    context, name = context_of(request), request.path_params["id"]
    await run_in_threadpool(context.lineage.admin.revoke_key, name)
    context.access.forget_keys()
    return json_response(RevokedKey(name=name))


async def get_verification(request: Request) -> Response:
    """Recompute the hash chain of the log, and name the first entry that was altered."""
    return json_response(await run_read(request, context_of(request).lineage.admin.verify))


async def get_audit(request: Request) -> Response:
    """List writes, refused requests and acts of admins: `?actor=&action=&since=&cursor=`."""
    context, query = context_of(request), request.query_params
    since = query.get("since")
    limit = query_number(request, "limit", 100, _MOST_ENTRIES) or 0
    wanted = AuditFilter(
        actor=query.get("actor"),
        action=query.get("action"),
        since=None if since is None else parse_since(since, now()),
        before=query_number(request, "cursor", None, _LARGEST_ID),
        limit=limit,
    )
    await run_read(request, context.access.refusals.write)
    found = await run_read(request, context.lineage.admin.audit_log, wanted)
    more = found[-1].id if found and len(found) == limit else None
    return json_response(AuditPage(entries=[_record(entry) for entry in found], next_cursor=more))


def _record(entry: AuditEntry) -> AuditRecord:
    content = msgspec.structs.asdict(entry)
    times = {name: render_time(content[name]) for name in ("first_at", "last_at")}
    return AuditRecord(**{**content, **times})


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/v1/me", get_me, KeyRole.READER, answers(Me)),
    Endpoint("GET", "/v1/policy", get_policy, KeyRole.READER, answers(ServerPolicy)),
    Endpoint("GET", "/v1/keys", get_keys, KeyRole.ADMIN, answers(Keys)),
    Endpoint(
        "POST",
        "/v1/keys",
        post_key,
        KeyRole.ADMIN,
        answers(CreatedKey, 400, 413, status=201),
        body=NewKey,
    ),
    Endpoint("DELETE", "/v1/keys/{id}", delete_key, KeyRole.ADMIN, answers(RevokedKey, 404)),
    Endpoint(
        "GET",
        "/v1/audit",
        get_audit,
        KeyRole.ADMIN,
        answers(AuditPage, 400),
        query=("actor", "action", "since", "cursor", "limit"),
    ),
    Endpoint(
        "GET", "/v1/audit/verification", get_verification, KeyRole.ADMIN, answers(Verification)
    ),
)
