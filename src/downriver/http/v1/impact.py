"""Changes: their impact, the verdict of the gate, and the patch that prepares for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.http.request import context_of, json_response, read_body, read_struct, run_simulation
from downriver.impact import UploadedFiles, decide, parse_changes, parse_policy
from downriver.model.answers import BlindSpot
from downriver.model.verdicts import Effect, ImpactRequest

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.model.verdicts import Impact, Verdict
    from downriver.service import Lineage


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


class PolicyImpactRequest(ImpactRequest, kw_only=True):
    """A change, and the policy that decides about it."""

    policy: dict[str, Any] | None = None


class FixRequest(ImpactRequest, kw_only=True):
    """A change, and the files to write a patch for: their text by path.

    Without files, the patch is for the repository that the server was started with.
    """

    files: dict[str, str] | None = None


async def post_impact(request: Request) -> Response:
    """Simulate proposed changes to an asset: `{"asset_id": …, "proposed_changes": […]}`."""
    body = await _read_object(request)
    asset = body.get("asset_id")
    if not isinstance(asset, str) or not asset:
        raise InvalidRequestError("asset_id", "missing")
    changes = parse_changes(body.get("proposed_changes"), dataset=asset, field="proposed_changes")
    impact = await run_simulation(request, context_of(request).lineage.impact, changes)
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
    impact = await run_simulation(request, _impact_of, lineage, body)
    return json_response(await run_in_threadpool(lineage.impact.gate, impact, policy))


def _impact_of(lineage: Lineage, body: dict[str, Any]) -> Impact:
    if ("changes" in body) == ("ddl" in body):
        raise InvalidRequestError("changes", "give either changes or ddl")
    if "changes" in body:
        return lineage.impact(parse_changes(body["changes"]))
    ddl, dialect = body["ddl"], body.get("dialect")
    if not isinstance(ddl, str) or not isinstance(dialect, str | None):
        raise InvalidRequestError("ddl", "must be text")
    return lineage.impact.of_ddl(ddl, dialect)


async def _read_object(request: Request) -> dict[str, Any]:
    raw = await read_body(request, context_of(request).max_body)
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidEventError("", f"the body is not valid JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise InvalidEventError("", "the body must be an object")
    return body


async def post_impact_request(request: Request) -> Response:
    """Return the impact of one change: `{"entity_id": …, "change_type": …, "column": …}`."""
    body = await read_struct(request, PolicyImpactRequest)
    policy = parse_policy(body.policy)
    answer = await run_simulation(request, context_of(request).lineage.impact.analyze, body, policy)
    return json_response(answer)


async def post_fix(request: Request) -> Response:
    """Write the patch for a change without applying it: `{"entity_id": …, …, "files": {…}}`."""
    body = await read_struct(request, FixRequest)
    code = None if body.files is None else UploadedFiles(body.files)
    answer = await run_simulation(
        request, context_of(request).lineage.impact.suggest_fix, body, code
    )
    return json_response(answer)
