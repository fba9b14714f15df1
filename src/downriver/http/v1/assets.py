"""Our own API: `/v1/*`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.errors import InvalidAssetError, InvalidEventError, InvalidRequestError
from downriver.http.request import context_of, json_response, query_number, query_text, read_body
from downriver.impact import decide, parse_changes, parse_ddl, parse_policy
from downriver.model.answers import BlindSpot
from downriver.model.verdicts import Effect
from downriver.openlineage.wire import decode
from downriver.service import DEFAULT_LIMIT

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.model.changes import Change
    from downriver.model.verdicts import Verdict

_DEEPEST = 10_000
_DEFAULT_TREE_DEPTH = 10
_MOST_NODES = 100_000


class AssetRequest(msgspec.Struct, kw_only=True):
    """An asset to register. `source` is its code, where the server has no repository to look in."""

    asset_type: str
    name: str
    source_ref: str = ""
    upstream_assets: list[str] | None = None
    source: str | None = None


async def post_asset(request: Request) -> Response:
    """Register an asset and what it depends on; its code is read for what it does not say."""
    context = context_of(request)
    body = await read_body(request, context.max_body)
    try:
        asset = decode(body, AssetRequest)
    except InvalidEventError as exc:
        raise InvalidAssetError(exc.field or "body", exc.reason) from exc
    answer = await run_in_threadpool(
        context.lineage.register_asset,
        asset.asset_type,
        asset.name,
        source_ref=asset.source_ref,
        upstream_assets=asset.upstream_assets or (),
        source=asset.source,
    )
    return json_response(answer, 201)


async def get_asset_tree(request: Request) -> Response:
    """Return the assets below and above one, nested: `?direction=&depth=`."""
    depth = query_number(request, "depth", _DEFAULT_TREE_DEPTH, _DEEPEST)
    answer = await run_in_threadpool(
        context_of(request).lineage.asset_tree,
        request.path_params["id"],
        request.query_params.get("direction", "downstream"),
        depth=depth,
    )
    return json_response(answer)


async def get_trace(request: Request) -> Response:
    """Trace a dataset, job or column: `?entity=&direction=&depth=&as_of=&limit=`."""
    entity = query_text(request, "entity")
    depth = query_number(request, "depth", None, _DEEPEST)
    limit = query_number(request, "limit", DEFAULT_LIMIT, _MOST_NODES)
    answer = await run_in_threadpool(
        context_of(request).lineage.trace,
        entity,
        request.query_params.get("direction", "downstream"),
        depth=depth,
        as_of=request.query_params.get("as_of"),
        limit=limit or 0,
    )
    return json_response(answer)


async def get_paths(request: Request) -> Response:
    """Find the routes from one entity to another: `?source=&target=&limit=`."""
    limit = query_number(request, "limit", 10, 1000)
    answer = await run_in_threadpool(
        context_of(request).lineage.paths,
        query_text(request, "source"),
        query_text(request, "target"),
        limit=limit or 0,
    )
    return json_response(answer)


async def get_status(request: Request) -> Response:
    """Say what the store holds."""
    return json_response(await run_in_threadpool(context_of(request).lineage.status))


class ImpactReport(msgspec.Struct, kw_only=True):
    """The blast radius of proposed changes."""

    asset_id: str
    risk_level: str
    decision: str
    reason: str
    recommendation: str
    affected_count: int
    affected_assets: list[Effect]
    untouched_count: int
    complete: bool
    blind_spots: list[BlindSpot]


async def post_impact(request: Request) -> Response:
    """Simulate proposed changes to an asset: `{"asset_id": …, "proposed_changes": […]}`."""
    body = await _read_object(request)
    asset = body.get("asset_id")
    if not isinstance(asset, str) or not asset:
        raise InvalidRequestError("asset_id", "missing")
    changes = parse_changes(body.get("proposed_changes"), dataset=asset, field="proposed_changes")
    impact = await run_in_threadpool(context_of(request).lineage.impact, changes)
    return json_response(_report(asset, decide(impact)))


def _report(asset: str, verdict: Verdict) -> ImpactReport:
    impact = verdict.impact
    return ImpactReport(
        asset_id=asset,
        risk_level=verdict.risk.value.lower(),
        decision=verdict.decision.value,
        reason=verdict.reason,
        recommendation=verdict.recommendation,
        affected_count=verdict.affected,
        affected_assets=impact.effects,
        untouched_count=impact.untouched,
        complete=impact.complete,
        blind_spots=impact.blind_spots,
    )


async def post_gate(request: Request) -> Response:
    """Decide about changes: `{"changes": […]}` or `{"ddl": …, "dialect": …}`, and a `policy`."""
    body = await _read_object(request)
    lineage = context_of(request).lineage
    policy = parse_policy(body.get("policy"))
    impact = await run_in_threadpool(lineage.impact, _changes_in(body))
    return json_response(await run_in_threadpool(lineage.gate, impact, policy))


def _changes_in(body: dict[str, Any]) -> list[Change]:
    if ("changes" in body) == ("ddl" in body):
        raise InvalidRequestError("changes", "give either changes or ddl")
    if "changes" in body:
        return parse_changes(body["changes"])
    ddl, dialect = body["ddl"], body.get("dialect")
    if not isinstance(ddl, str) or not isinstance(dialect, str | None):
        raise InvalidRequestError("ddl", "must be text")
    return parse_ddl(ddl, dialect)


async def _read_object(request: Request) -> dict[str, Any]:
    raw = await read_body(request, context_of(request).max_body)
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidEventError("", f"the body is no JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise InvalidEventError("", "the body must be an object")
    return body
