"""Finding entities: a search, and the whole graph as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.http.endpoint import Endpoint, answers
from downriver.http.request import context_of, json_response, query_number, run_read
from downriver.model.views.search import GraphMap, SearchPage
from downriver.service.views.search import SearchFilter
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_RESULTS = 1_000


async def get_search(request: Request) -> Response:
    """Find datasets, jobs, columns, tags and owners by words: `?text=&limit=&cursor=&as_of=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.search,
        query.get("text", ""),
        limit=query_number(request, "limit", 20, _MOST_RESULTS) or 0,
        cursor=query.get("cursor"),
        where=SearchFilter(*(query.get(name) or None for name in SearchFilter._fields)),
        as_of=query.get("as_of"),
    )
    return json_response(answer)


async def get_map(request: Request) -> Response:
    """Return the whole graph as arrays, or in groups: `?group=&as_of=`."""
    query = request.query_params
    answer = await run_read(
        request,
        context_of(request).lineage.map,
        query.get("group", "none"),
        as_of=query.get("as_of"),
    )
    return json_response(answer)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/search",
        get_search,
        KeyRole.READER,
        answers(SearchPage, 400),
        query=("text", "limit", "cursor", "kind", "type", "namespace", "tag", "owner", "as_of"),
        of_events=True,
    ),
    Endpoint(
        "GET",
        "/v1/map",
        get_map,
        KeyRole.READER,
        answers(GraphMap, 400),
        query=("group", "as_of"),
        of_events=True,
    ),
)
