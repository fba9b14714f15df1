"""Triggers: recorded actions, and what a finding would start. The server runs no action."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.govern.triggers import parse_triggers
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, query_number, read_struct, run_read
from downriver.model.governance import FindingKind, Severity
from downriver.model.trust.triggers import TriggeredActions, TriggerHistory
from downriver.service.limits import DEFAULT_FINDINGS
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MAX_ACTIONS = 10_000


class TriggerTestRequest(msgspec.Struct, kw_only=True):
    """Triggers as in downriver.yml, and a finding to assume: an entity and a kind."""

    triggers: list[dict[str, Any]]
    entity: str
    kind: FindingKind = FindingKind.COLUMN_RETYPED
    severity: Severity = Severity.WARNING


async def get_actions(request: Request) -> Response:
    """Return recorded actions, the latest first: `?trigger=&state=&limit=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.triggers.history,
        trigger=query.get("trigger"),
        state=query.get("state"),
        limit=query_number(request, "limit", DEFAULT_FINDINGS, _MAX_ACTIONS) or 0,
    )
    return json_response(answer)


async def post_test(request: Request) -> Response:
    """Return the actions that a finding would start. Nothing is run or recorded."""
    asked = await read_struct(request, TriggerTestRequest)
    preview = partial(
        context_of(request).lineage.triggers.preview,
        parse_triggers(asked.triggers),
        asked.entity,
        asked.kind.value,
        asked.severity.value,
    )
    return json_response(await run_read(request, preview))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/triggers",
        get_actions,
        KeyRole.READER,
        answers(TriggerHistory, 400),
        query=("trigger", "state", "limit"),
        whole_store=True,
    ),
    Endpoint(
        "POST",
        "/v1/triggers/test",
        post_test,
        KeyRole.READER,
        answers(TriggeredActions, *NAMED, 413, 503),
        body=TriggerTestRequest,
    ),
)
