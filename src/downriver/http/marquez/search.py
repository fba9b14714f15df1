"""Search over names, columns and SQL in the format of Marquez."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.parameters import read_page
from downriver.http.marquez.shapes import (
    MarquezSearchHits,
    MarquezSearchResult,
    MarquezSearchResults,
)
from downriver.http.request import context_of, json_response, query_text, run_read
from downriver.model.ids import JobId
from downriver.openlineage.wire import render_time
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot
    from downriver.model.ids import NodeId
    from downriver.service import Lineage

_CONSIDERED = 5_000  # matches that are filtered and sorted
_HITS = 50


class _Query(NamedTuple):
    """What to search for."""

    text: str
    filter: str | None = None
    sort: str = "NAME"
    namespace: str | None = None
    before: int | None = None
    after: int | None = None


class _Match(NamedTuple):
    """A dataset or job, and when it was last mentioned."""

    number: int
    id: NodeId
    updated_at: int


async def get_marquez_search(request: Request) -> Response:
    """Return datasets and jobs whose names contain a text.

    `?q=&filter=&sort=&limit=&namespace=&before=&after=`
    """
    parameters = request.query_params
    query = _Query(
        text=query_text(request, "q"),
        filter=_choice(request, "filter", ("DATASET", "JOB")),
        sort=_choice(request, "sort", ("NAME", "UPDATE_AT", "UPDATED_AT")) or "NAME",
        namespace=parameters.get("namespace") or None,
        before=_date(request, "before"),
        after=_date(request, "after"),
    )
    limit = read_page(request, 10).limit
    matches = await run_read(request, _search, context_of(request).lineage, query)
    results = [_result(match) for match in matches[:limit]]
    return json_response(MarquezSearchResults(len(results), results))


async def get_marquez_job_hits(request: Request) -> Response:
    """Return jobs whose names contain a text, with their facets: `?q=`."""
    return await _hits(request, "JOB")


async def get_marquez_dataset_hits(request: Request) -> Response:
    """Return datasets whose names contain a text, with their facets: `?q=`."""
    return await _hits(request, "DATASET")


async def _hits(request: Request, kind: str) -> Response:
    query = _Query(query_text(request, "q"), kind)
    return json_response(await run_read(request, _find_hits, context_of(request).lineage, query))


def _choice(request: Request, name: str, choices: tuple[str, ...]) -> str | None:
    text = request.query_params.get(name, "").upper()
    if text and text not in choices:
        raise InvalidRequestError(name, f"{text!r} is not one of {', '.join(choices)}")
    return text or None


def _date(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if not text:
        return None
    try:
        day = dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.timezone.utc)
    except ValueError as exc:
        raise InvalidRequestError(name, f"{text!r} is not a date such as 2026-01-31") from exc
    return int(day.timestamp()) * 1_000_000


def _search(lineage: Lineage, query: _Query) -> list[_Match]:
    """Return the matches of a query. A dataset with several names is one match."""
    with lineage.session.reading() as view:
        ids = lineage.session.search_index(view).names.search([query.text], _CONSIDERED, 0, 0).ids
        hidden = view.reader.directory.find_deleted(ids)
        shown = [number for number in ids if number not in hidden]
        matches = [match for match in _matches(view, shown) if _fits(match, query)]
    if query.sort == "NAME":
        return sorted(matches, key=lambda match: (match.id.name, match.id.namespace))
    return sorted(matches, key=lambda match: (-match.updated_at, match.id.name))


def _matches(view: CatalogSnapshot, numbers: list[int]) -> list[_Match]:
    records = view.reader.nodes.records(numbers)
    once: dict[int, _Match] = {}
    for number in numbers:
        if number in records:  # the index of names may be newer than the view
            record = records[number]
            group = view.graph.nodes.identities.canonical(number)
            once.setdefault(group, _Match(number, record.id, record.last_at))
    return list(once.values())


def _fits(match: _Match, query: _Query) -> bool:
    kind = "JOB" if isinstance(match.id, JobId) else "DATASET"
    return (
        query.filter in (None, kind)
        and query.namespace in (None, match.id.namespace)
        and (query.before is None or match.updated_at < query.before)
        and (query.after is None or match.updated_at > query.after)
    )


def _result(match: _Match) -> MarquezSearchResult:
    return MarquezSearchResult(
        type="JOB" if isinstance(match.id, JobId) else "DATASET",
        name=match.id.name,
        updated_at=render_time(match.updated_at),
        namespace=match.id.namespace,
        node_id=str(match.id),
    )


def _find_hits(lineage: Lineage, query: _Query) -> MarquezSearchHits:
    matches = _search(lineage, query)[:_HITS]
    numbers = [match.number for match in matches]
    with lineage.session.reading() as view:
        facets = view.reader.facets.of_each(numbers)
        runs = view.reader.runs.latest_of_each(numbers, 1)
    hits, highlights = [], []
    for match in matches:
        run = next(iter(runs.get(match.number, ())), None)
        own = facets.get(match.number, {})
        hit: dict[str, Any] = {
            "run_id": run.run if run else "",
            "name": match.id.name,
            "namespace": match.id.namespace,
            "eventType": run.state.name if run else "",
            "facets": {name: msgspec.Raw(body) for name, body in own.items()},
        }
        if query.filter == "JOB":
            hit |= {"type": "BATCH", "runFacets": {}}
        hits.append(hit)
        highlights.append({"name": [_highlighted(match.id.name, query.text)]})
    return MarquezSearchHits(hits, highlights)


def _highlighted(name: str, text: str) -> str:
    return re.sub(re.escape(text), r"<em>\g<0></em>", name, flags=re.IGNORECASE)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/search",
        get_marquez_search,
        KeyRole.READER,
        answers(MarquezSearchResults, 400),
        query=("q", "filter", "sort", "limit", "namespace", "before", "after"),
    ),
    Endpoint(
        "GET",
        "/api/v2beta/search/jobs",
        get_marquez_job_hits,
        KeyRole.READER,
        answers(MarquezSearchHits, 400),
        query=("q",),
    ),
    Endpoint(
        "GET",
        "/api/v2beta/search/datasets",
        get_marquez_dataset_hits,
        KeyRole.READER,
        answers(MarquezSearchHits, 400),
        query=("q",),
    ),
)
