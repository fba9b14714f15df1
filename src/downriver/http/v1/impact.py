"""Changes: their impact, the verdict of the gate, and the patch that prepares for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError
from downriver.http.code_requests import answer_code
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import decode_struct
from downriver.impact import (
    Fix,
    UploadedFiles,
    decide,
    parse_changes,
    parse_policy,
    read_ddl,
    render_markdown,
)
from downriver.model.answers import BlindSpot
from downriver.model.changes import Outcome
from downriver.model.verdicts import (
    Effect,
    EffectSeverity,
    ImpactAnswer,
    ImpactRequest,
    Verdict,
)
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.impact import Fix
    from downriver.model.verdicts import Impact, ImpactAnswer
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


class ImpactReportRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Proposed changes to an asset, and the moment of the lineage: now by default."""

    asset_id: str
    proposed_changes: list[dict[str, Any]]
    as_of: str | None = None


class GateRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Changes or a migration, and the policy that decides about them."""

    changes: list[dict[str, Any]] | None = None
    ddl: str | None = None
    dialect: str | None = None
    policy: dict[str, Any] | None = None


class PolicyImpactRequest(ImpactRequest, kw_only=True):
    """A change, the policy that decides about it, and the moment of the lineage: now by default."""

    policy: dict[str, Any] | None = None
    as_of: str | None = None


class FixRequest(ImpactRequest, kw_only=True):
    """A change, and the files to write a patch for: their text by path.

    Without files, the patch is for the repository that the server was started with.
    """

    files: dict[str, str] | None = None


class PreviewRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A proposal in one of three forms: changes, a migration, or a diff of the repository.

    `as_of` is the moment of the lineage. It needs `changes`: a diff is about the present code.
    """

    changes: list[dict[str, Any]] | None = None
    ddl: str | None = None
    dialect: str | None = None
    diff: str | None = None
    policy: dict[str, Any] | None = None
    as_of: str | None = None


class Preview(msgspec.Struct, kw_only=True):
    """The verdict about a proposal, and the same as a comment on a pull request (Markdown).

    `changes` are the changes of the proposal, as `/v1/fix` takes them; none of a diff.
    """

    verdict: Verdict
    comment: str
    changes: list[dict[str, Any]]


async def post_impact(request: Request) -> Response:
    """Simulate changes to an asset: `{"asset_id": …, "proposed_changes": […], "as_of": …}`."""
    return await answer_code(request, report_impact)


def report_impact(lineage: Lineage, body: bytes) -> ImpactReport:
    """Return the impact of the changes in a request."""
    asked = decode_struct(body, ImpactReportRequest)
    asset = asked.asset_id
    if not asset:
        raise InvalidRequestError("asset_id", "missing")
    changes = parse_changes(asked.proposed_changes, dataset=asset, field="proposed_changes")
    verdict = decide(lineage.impact(changes, as_of=asked.as_of))
    impact = verdict.impact
    return ImpactReport(
        asset_id=asset,
        risk_level=verdict.risk.value.lower(),
        decision=verdict.decision.value,
        reason=verdict.reason,
        recommendation=verdict.recommendation,
        affected_count=verdict.affected,
        affected_assets=sorted(
            map(_rate_effect, impact.effects),
            key=lambda e: e.severity is not EffectSeverity.BREAKING,
        ),
        untouched_count=impact.untouched,
        complete=impact.complete,
        blind_spots=impact.blind_spots,
    )


def _rate_effect(effect: Effect) -> Effect:
    """Return an effect as this report rates it.

    A consumer that is not rebuilt now, but whose code names the column, breaks at the next build.
    """
    names_it = any(not reference.conditional for reference in effect.references)
    if effect.outcome is Outcome.NOT_REBUILT and names_it:
        return msgspec.structs.replace(effect, severity=EffectSeverity.BREAKING)
    return effect


async def post_gate(request: Request) -> Response:
    """Decide about changes: `{"changes": […]}` or `{"ddl": …, "dialect": …}`, and a `policy`."""
    return await answer_code(request, decide_changes)


def decide_changes(lineage: Lineage, body: bytes) -> Verdict:
    """Return the verdict about the changes in a request."""
    asked = decode_struct(body, GateRequest)
    return lineage.impact.gate(_impact_of(lineage, asked), parse_policy(asked.policy))


async def post_preview(request: Request) -> Response:
    """Decide about a proposal without recording it: `{"changes": […]}`, `ddl` or `diff`."""
    return await answer_code(request, preview_changes)


def preview_changes(lineage: Lineage, body: bytes) -> Preview:
    """Return the verdict about the proposal in a request. Nothing is written to the log."""
    asked = decode_struct(body, PreviewRequest)
    impact, changes = _proposed(lineage, asked)
    policy = lineage.impact.policy()[0] if asked.policy is None else parse_policy(asked.policy)
    verdict = decide(impact, policy)
    return Preview(verdict=verdict, comment=render_markdown(verdict), changes=changes)


def _proposed(lineage: Lineage, asked: PreviewRequest) -> tuple[Impact, list[dict[str, Any]]]:
    forms = (asked.changes, asked.ddl, asked.diff)
    if sum(form is not None for form in forms) != 1:
        raise InvalidRequestError("changes", "give one of changes, ddl and diff")
    if asked.as_of is not None and asked.changes is None:
        raise InvalidRequestError(
            "as_of", "as_of needs `changes`; a diff or DDL is about the present"
        )
    if asked.diff is not None:
        return lineage.impact.of_diff(asked.diff), []
    if asked.ddl is not None:
        impact = lineage.impact.of_ddl(asked.ddl, asked.dialect)
        stated = read_ddl(asked.ddl, asked.dialect).changes
        return impact, [msgspec.to_builtins(located.change) for located in stated]
    return lineage.impact(parse_changes(asked.changes), as_of=asked.as_of), asked.changes or []


def _impact_of(lineage: Lineage, asked: GateRequest) -> Impact:
    if (asked.changes is None) == (asked.ddl is None):
        raise InvalidRequestError("changes", "give either changes or ddl")
    if asked.ddl is not None:
        return lineage.impact.of_ddl(asked.ddl, asked.dialect)
    return lineage.impact(parse_changes(asked.changes))


async def post_impact_request(request: Request) -> Response:
    """Return the impact of one change: `{"entity_id": …, "change_type": …, "column": …}`."""
    return await answer_code(request, analyze_change)


def analyze_change(lineage: Lineage, body: bytes) -> ImpactAnswer:
    """Return the impact of the change in a request, and the verdict."""
    asked = decode_struct(body, PolicyImpactRequest)
    return lineage.impact.analyze(asked, parse_policy(asked.policy), as_of=asked.as_of)


async def post_fix(request: Request) -> Response:
    """Write the patch for a change without applying it: `{"entity_id": …, …, "files": {…}}`."""
    return await answer_code(request, suggest_fix)


def suggest_fix(lineage: Lineage, body: bytes) -> Fix:
    """Return the patch for the change in a request."""
    asked = decode_struct(body, FixRequest)
    code = None if asked.files is None else UploadedFiles(asked.files)
    return lineage.impact.suggest_fix(asked, code)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/lineage/impact",
        post_impact,
        KeyRole.READER,
        answers(ImpactReport, *NAMED, 413),
        body=ImpactReportRequest,
    ),
    Endpoint(
        "POST",
        "/v1/gate",
        post_gate,
        KeyRole.WRITER,
        answers(Verdict, *NAMED, 413),
        body=GateRequest,
    ),
    Endpoint(
        "POST",
        "/v1/preview",
        post_preview,
        KeyRole.READER,
        answers(Preview, *NAMED, 413),
        body=PreviewRequest,
    ),
    Endpoint(
        "POST",
        "/v1/impact",
        post_impact_request,
        KeyRole.READER,
        answers(ImpactAnswer, *NAMED, 413),
        body=PolicyImpactRequest,
    ),
    Endpoint(
        "POST",
        "/v1/fix",
        post_fix,
        KeyRole.READER,
        answers(Fix, *NAMED, 413),
        body=FixRequest,
    ),
)
