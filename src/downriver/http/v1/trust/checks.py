"""Checks of the lineage, and quality scores of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, query_text, run_read
from downriver.model.trust.checks import LineageChecks
from downriver.model.trust.quality import QualityScore
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


async def get_quality(request: Request) -> Response:
    """Return the quality score of a dataset and the worst one upstream: `?dataset=&at=`."""
    score = context_of(request).lineage.quality
    dataset, at = query_text(request, "dataset"), request.query_params.get("at")
    return json_response(await run_read(request, score, dataset, at))


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
    Endpoint(
        "GET",
        "/v1/quality",
        get_quality,
        KeyRole.READER,
        answers(QualityScore, *NAMED),
        query=("dataset", "at"),
    ),
)
