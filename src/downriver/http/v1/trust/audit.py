"""Signed checkpoints of the log, and the audit log as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from downriver.govern.audit.checkpoints import Checkpoint
from downriver.govern.audit.log_export import render_audit
from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import context_of, json_response, read_struct, run_read
from downriver.service.govern import parse_since
from downriver.service.session import now
from downriver.store import KeyRole, Verification

if TYPE_CHECKING:
    from starlette.requests import Request


class CheckpointComparison(msgspec.Struct, kw_only=True):
    """Checkpoints to compare the log with, and the public key that they must be signed with."""

    checkpoints: list[Checkpoint]
    key: str | None = None


async def post_checkpoint(request: Request) -> Response:
    """Return a signed checkpoint of the log. Keep it outside the store."""
    return json_response(await run_in_threadpool(context_of(request).lineage.checkpoints), 201)


async def post_verification(request: Request) -> Response:
    """Compare the log with checkpoints: `{"checkpoints": […], "key": …}`."""
    asked = await read_struct(request, CheckpointComparison)
    verify = context_of(request).lineage.checkpoints.verify
    return json_response(await run_read(request, verify, asked.checkpoints, key=asked.key))


async def get_audit_export(request: Request) -> Response:
    """Return the whole audit log as a file: `?format=jsonl|csv&actor=&action=&since=`."""
    query, lineage = request.query_params, context_of(request).lineage
    since = query.get("since")
    start = None if since is None else parse_since(since, now())
    wanted = query.get("format", "jsonl").strip().lower()

    def render() -> str:
        entries = lineage.checkpoints.audit_entries(
            actor=query.get("actor"), action=query.get("action"), since=start
        )
        return "".join(render_audit(entries, wanted))

    text = await run_read(request, render)
    kind = "text/csv" if wanted == "csv" else "application/jsonl"
    disposition = f'attachment; filename="audit.{wanted}"'
    return Response(text, 200, {"Content-Disposition": disposition}, kind)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/audit/checkpoints",
        post_checkpoint,
        KeyRole.ADMIN,
        answers(Checkpoint, 400, 503, status=201),
        whole_store=True,
    ),
    Endpoint(
        "POST",
        "/v1/audit/verification",
        post_verification,
        KeyRole.ADMIN,
        answers(Verification, 400, 413, 503),
        body=CheckpointComparison,
        whole_store=True,
    ),
    Endpoint(
        "GET",
        "/v1/audit/export",
        get_audit_export,
        KeyRole.ADMIN,
        answers(None, 400),
        query=("format", "actor", "action", "since"),
        whole_store=True,
    ),
)
