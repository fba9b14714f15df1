"""Runs of jobs in the format of Marquez: lists, facets, and runs that people create."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.graph_facts import GraphFacts, RunFacts
from downriver.http.marquez.graph_nodes import GraphNodes
from downriver.http.marquez.parameters import PAGE, ListPage, read_page
from downriver.http.marquez.records import RunData
from downriver.http.marquez.shapes import MarquezRunFacets, MarquezRuns, RunRequest
from downriver.http.request import context_of, json_response, query_text, read_struct, run_read
from downriver.model.facts import FacetRole
from downriver.model.ids import JobId, bounded
from downriver.openlineage.facets.base import job_id
from downriver.openlineage.facets.job import NominalTimeFacet
from downriver.service.govern import parse_moment
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot
    from downriver.service import Lineage
    from downriver.store import Run
    from downriver.store.catalog.run_history import RunFacet


async def list_marquez_runs(request: Request) -> Response:
    """Return the runs of a job, the latest first: `?limit=&offset=`."""
    lineage, job = context_of(request).lineage, _job_id(request)
    return json_response(await run_read(request, _list_runs, lineage, job, read_page(request)))


async def post_marquez_run(request: Request) -> Response:
    """Create a run of a job that has not started."""
    body = await read_struct(request, RunRequest)
    lineage, job = context_of(request).lineage, _job_id(request)
    run = await run_in_threadpool(_create_run, lineage, job, body)
    response = json_response(await run_read(request, _get_run, lineage, run), 201)
    response.headers["Location"] = f"/api/v1/jobs/runs/{quote(run, safe='')}"
    return response


async def get_marquez_run(request: Request) -> Response:
    """Return a run."""
    lineage = context_of(request).lineage
    return json_response(await run_read(request, _get_run, lineage, _run_id(request)))


async def get_marquez_run_facets(request: Request) -> Response:
    """Return the facets of a run as sent, or with `type=job` those of its job."""
    lineage, kind = context_of(request).lineage, query_text(request, "type").lower()
    if kind not in ("run", "job", "dataset"):
        raise InvalidRequestError("type", f"{kind!r} is not run, job or dataset")
    return json_response(await run_read(request, _get_facets, lineage, _run_id(request), kind))


async def start_marquez_run(request: Request) -> Response:
    """Record that a run started: `?at=` is the time."""
    return await _mark(request, "START")


async def complete_marquez_run(request: Request) -> Response:
    """Record that a run completed: `?at=` is the time."""
    return await _mark(request, "COMPLETE")


async def fail_marquez_run(request: Request) -> Response:
    """Record that a run failed: `?at=` is the time."""
    return await _mark(request, "FAIL")


async def abort_marquez_run(request: Request) -> Response:
    """Record that a run was aborted: `?at=` is the time."""
    return await _mark(request, "ABORT")


def _run_id(request: Request) -> str:
    return bounded(request.path_params["id"])


def _job_id(request: Request) -> JobId:
    return job_id(request.path_params["namespace"], request.path_params["job"])


async def _mark(request: Request, state: str) -> Response:
    lineage, run = context_of(request).lineage, _run_id(request)
    # A client that does not encode the plus of a time zone sends a space.
    text = request.query_params.get("at", "").replace(" ", "+")
    at = parse_moment(text, "at") if text else None
    await run_in_threadpool(lineage.registry.mark_run, run, state, at)
    return json_response(await run_read(request, _get_run, lineage, run))


def _create_run(lineage: Lineage, job: JobId, body: RunRequest) -> str:
    with lineage.session.reading() as view:
        lineage.directory.get_node(job, view)
    for field, text in (
        ("nominalStartTime", body.nominal_start_time),
        ("nominalEndTime", body.nominal_end_time),
    ):
        if text:
            parse_moment(text, field)
    nominal = NominalTimeFacet(body.nominal_start_time or "", body.nominal_end_time or "")
    run = None if body.id is None else bounded(body.id)
    return lineage.registry.create_run(job, run, nominal, body.args or {})


def _list_runs(lineage: Lineage, job: JobId, page: ListPage) -> MarquezRuns:
    with lineage.session.reading() as view:
        number = lineage.directory.get_node(job, view)
        runs = view.reader.directory.runs(number, *page)
        described = describe_runs(view, [(number, run) for run in runs])
        return MarquezRuns(described, view.reader.directory.count_runs(number))


def _get_run(lineage: Lineage, run: str) -> RunData:
    with lineage.session.reading() as view:
        return describe_runs(view, _find(view, run))[0]


def _get_facets(lineage: Lineage, run: str, kind: str) -> MarquezRunFacets:
    with lineage.session.reading() as view:
        ((job, run_number),) = _find(view, run)
        if kind == "job":
            facets = view.reader.facets.of(job)
        else:
            wanted = (FacetRole.RUN,) if kind == "run" else (FacetRole.INPUT, FacetRole.OUTPUT)
            sent = view.reader.run_history.facets([run_number.number])
            facets = {facet.name: facet.body for facet in sent if facet.role in wanted}
    return MarquezRunFacets(run, {name: msgspec.Raw(body) for name, body in facets.items()})


def _find(view: CatalogSnapshot, run: str) -> list[tuple[int, Run]]:
    """Return the run with an id; of several jobs with the same one, the latest."""
    runs = view.reader.directory.find_runs([run])
    if not runs:
        raise EntityNotFoundError(run)
    return runs[:1]


def describe_runs(
    view: CatalogSnapshot, runs: Sequence[tuple[int, Run]], facets: Sequence[str] = ()
) -> list[RunData]:
    """Return runs, each given with its job, with all facets or some. All are read at once."""
    jobs = np.array(sorted({job for job, _ in runs}), np.int32)
    nodes = GraphNodes(GraphFacts(view, jobs), RunFacts(view, ()))
    sent: defaultdict[int, list[RunFacet]] = defaultdict(list)
    for facet in view.reader.run_history.facets([run.number for _, run in runs], facets):
        sent[facet.run].append(facet)
    return [nodes.run(job, run, sent[run.number]) for job, run in runs]


_RUNS = "/api/v1/namespaces/{namespace}/jobs/{job}/runs"
_RUN = "/api/v1/jobs/runs/{id}"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        _RUNS,
        list_marquez_runs,
        KeyRole.READER,
        answers(MarquezRuns, 400, 404),
        query=PAGE,
    ),
    Endpoint(
        "POST",
        _RUNS,
        post_marquez_run,
        KeyRole.WRITER,
        answers(RunData, 400, 404, 413, 503, status=201),
        body=RunRequest,
    ),
    Endpoint("GET", _RUN, get_marquez_run, KeyRole.READER, answers(RunData, 404)),
    Endpoint(
        "GET",
        f"{_RUN}/facets",
        get_marquez_run_facets,
        KeyRole.READER,
        answers(MarquezRunFacets, 400, 404),
        query=("type",),
    ),
    *(
        Endpoint(
            "POST",
            f"{_RUN}/{action}",
            handler,
            KeyRole.WRITER,
            answers(RunData, 400, 404, 503),
            query=("at",),
        )
        for action, handler in (
            ("start", start_marquez_run),
            ("complete", complete_marquez_run),
            ("fail", fail_marquez_run),
            ("abort", abort_marquez_run),
        )
    ),
)
