"""The systems that can send lineage, and the versions of datasets that they report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, query_number, query_text, run_read
from downriver.model.views.integrations import IntegrationList
from downriver.model.views.versions import DatasetVersions
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_VERSIONS = 5_000


async def get_integrations(request: Request) -> Response:
    """Return the integrations with the package of each, and the last job received from it."""
    return json_response(await run_read(request, context_of(request).lineage.integrations))


async def get_versions(request: Request) -> Response:
    """Return the versions of a dataset: `?entity=&version=&before=&limit=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.versions,
        query_text(request, "entity"),
        version=query.get("version"),
        before=query.get("before"),
        limit=query_number(request, "limit", 50, _MOST_VERSIONS) or 0,
    )
    return json_response(answer)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/integrations",
        get_integrations,
        KeyRole.READER,
        answers(IntegrationList),
    ),
    Endpoint(
        "GET",
        "/v1/versions",
        get_versions,
        KeyRole.READER,
        answers(DatasetVersions, *NAMED),
        query=("entity", "version", "before", "limit"),
        of_events=True,
    ),
)
