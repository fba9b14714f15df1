"""Removing datasets and jobs from answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, read_struct
from downriver.model.access import ACTOR
from downriver.model.trust.retention import (
    Forgotten,
    ForgottenEdge,
    Pruned,
    RedactedEntries,
    RestoredRuns,
)
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class ForgetRequest(msgspec.Struct, kw_only=True):
    """The dataset or job to remove from answers; `undo` shows it again."""

    entity: str
    reason: str = ""
    undo: bool = False
    dry_run: bool = False


class ForgetEdgeRequest(msgspec.Struct, kw_only=True):
    """The ends of the edge to remove from answers, a job and a dataset; `undo` shows it again."""

    source: str
    target: str
    reason: str = ""
    undo: bool = False
    dry_run: bool = False


class RestoreRunsRequest(msgspec.Struct, kw_only=True):
    """The job whose pruned runs are listed again."""

    job: str
    dry_run: bool = False


class PruneRequest(msgspec.Struct, kw_only=True):
    """Remove what no event has mentioned for this long, such as `90d`."""

    older_than: str
    dry_run: bool = False


class RedactRequest(msgspec.Struct, kw_only=True):
    """The name of a person to erase from facets in the log."""

    name: str
    reason: str = ""
    dry_run: bool = False


async def post_redact(request: Request) -> Response:
    """Erase a name from facets in the log: `{"name": …, "reason": …, "dry_run": true}`."""
    asked = await read_struct(request, RedactRequest)
    redact = partial(
        context_of(request).lineage.retention.redact,
        asked.name,
        reason=asked.reason,
        by=ACTOR.get(),
        done=not asked.dry_run,
    )
    return json_response(await run_in_threadpool(redact))


async def post_forget(request: Request) -> Response:
    """Remove a dataset or job from answers: `{"entity": …, "reason": …, "undo": false}`."""
    asked = await read_struct(request, ForgetRequest)
    forget = partial(
        context_of(request).lineage.retention.forget,
        asked.entity,
        reason=asked.reason,
        by=ACTOR.get(),
        undo=asked.undo,
        done=not asked.dry_run,
    )
    return json_response(await run_in_threadpool(forget))


async def post_forget_edge(request: Request) -> Response:
    """Remove one edge from answers: `{"source": …, "target": …, "reason": …, "undo": false}`."""
    asked = await read_struct(request, ForgetEdgeRequest)
    forget = partial(
        context_of(request).lineage.retention.forget_edge,
        asked.source,
        asked.target,
        reason=asked.reason,
        by=ACTOR.get(),
        undo=asked.undo,
        done=not asked.dry_run,
    )
    return json_response(await run_in_threadpool(forget))


async def post_restore_runs(request: Request) -> Response:
    """List the pruned runs of a job again: `{"job": …, "dry_run": true}`."""
    asked = await read_struct(request, RestoreRunsRequest)
    restore = context_of(request).lineage.retention.restore_runs
    return json_response(
        await run_in_threadpool(partial(restore, asked.job, by=ACTOR.get(), done=not asked.dry_run))
    )


async def post_prune(request: Request) -> Response:
    """Remove old datasets and jobs from answers: `{"older_than": "90d", "dry_run": true}`."""
    asked = await read_struct(request, PruneRequest)
    prune = context_of(request).lineage.retention.prune
    return json_response(
        await run_in_threadpool(
            partial(prune, asked.older_than, by=ACTOR.get(), done=not asked.dry_run)
        )
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/forget",
        post_forget,
        KeyRole.ADMIN,
        answers(Forgotten, *NAMED, 413, 503),
        body=ForgetRequest,
    ),
    Endpoint(
        "POST",
        "/v1/forget/edge",
        post_forget_edge,
        KeyRole.ADMIN,
        answers(ForgottenEdge, *NAMED, 413, 503),
        body=ForgetEdgeRequest,
    ),
    Endpoint(
        "POST",
        "/v1/forget/runs/undo",
        post_restore_runs,
        KeyRole.ADMIN,
        answers(RestoredRuns, *NAMED, 413, 503),
        body=RestoreRunsRequest,
    ),
    Endpoint(
        "POST",
        "/v1/redact",
        post_redact,
        KeyRole.ADMIN,
        answers(RedactedEntries, 400, 413, 503),
        body=RedactRequest,
    ),
    Endpoint(
        "POST",
        "/v1/prune",
        post_prune,
        KeyRole.ADMIN,
        answers(Pruned, 400, 413, 503),
        body=PruneRequest,
    ),
)
