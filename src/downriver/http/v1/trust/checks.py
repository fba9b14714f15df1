"""Checks of the lineage over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import context_of, json_response, run_read
from downriver.model.trust.checks import LineageChecks
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def get_checks(request: Request) -> Response:
    """Return what violates the rules of lineage: `?rule=&skip=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.checks,
        only=query.getlist("rule"),
        skip=query.getlist("skip"),
    )
    return json_response(answer)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/checks",
        get_checks,
        KeyRole.READER,
        answers(LineageChecks, 400),
        query=("rule", "skip"),
        whole_store=True,
    ),
)
