"""Jobs, their versions and their tags in the format of Marquez."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from starlette.concurrency import run_in_threadpool

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.graph_facts import GraphFacts, RunFacts
from downriver.http.marquez.graph_nodes import RUN_FIELDS, GraphNodes
from downriver.http.marquez.parameters import PAGE, ListPage, read_page
from downriver.http.marquez.records import MarquezName, MarquezVersion
from downriver.http.marquez.runs import describe_runs
from downriver.http.marquez.shapes import (
    JobRequest,
    MarquezJob,
    MarquezJobs,
    MarquezJobVersion,
    MarquezJobVersions,
)
from downriver.http.marquez.versions import job_version
from downriver.http.request import context_of, json_response, read_struct, run_read
from downriver.model.facts import EdgeKind, RunState
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.base import dataset_id, job_id
from downriver.openlineage.facets.description import TAGS, parse_tags
from downriver.openlineage.facets.job import JOB_TYPE, parse_job_type
from downriver.openlineage.wire import render_time
from downriver.service.catalog.registry import JobEntry
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot
    from downriver.http.marquez.records import RunData
    from downriver.service import Lineage

_LATEST = 10  # runs that are shown with a job
_STATES = {
    "NEW": (RunState.OTHER,),
    "RUNNING": (RunState.OTHER, RunState.START, RunState.RUNNING),
    "COMPLETED": (RunState.COMPLETE,),
    "ABORTED": (RunState.ABORT,),
    "FAILED": (RunState.FAIL,),
}


async def list_marquez_jobs(request: Request) -> Response:
    """Return all jobs, the last mentioned first: `?lastRunStates=&limit=&offset=`."""
    return await _list(request, None)


async def list_marquez_jobs_of_namespace(request: Request) -> Response:
    """Return the jobs of a namespace: `?lastRunStates=&limit=&offset=`."""
    return await _list(request, request.path_params["namespace"])


async def get_marquez_job(request: Request) -> Response:
    """Return a job with its latest runs."""
    lineage = context_of(request).lineage
    return json_response(await run_read(request, _get_job, lineage, _job_id(request)))


async def put_marquez_job(request: Request) -> Response:
    """Register a job with its inputs and outputs."""
    body = await read_struct(request, JobRequest)
    lineage, job = context_of(request).lineage, _job_id(request)
    await run_in_threadpool(_put_job, lineage, job, body)
    return json_response(await run_read(request, _get_job, lineage, job))


async def delete_marquez_job(request: Request) -> Response:
    """Hide a job until a later event mentions it again."""
    lineage, job = context_of(request).lineage, _job_id(request)
    answer = await run_read(request, _get_job, lineage, job)
    await run_in_threadpool(lineage.registry.delete, [job])
    return json_response(answer)


async def post_marquez_job_tag(request: Request) -> Response:
    """Tag a job."""
    return await _set_tag(request, present=True)


async def delete_marquez_job_tag(request: Request) -> Response:
    """Remove a tag from a job."""
    return await _set_tag(request, present=False)


async def list_marquez_job_versions(request: Request) -> Response:
    """Return the versions of a job, the newest first: `?limit=&offset=`."""
    lineage, job = context_of(request).lineage, _job_id(request)
    versions = await run_read(request, _versions, lineage, job)
    return json_response(MarquezJobVersions(read_page(request).of(versions), len(versions)))


async def get_marquez_job_version(request: Request) -> Response:
    """Return one version of a job."""
    lineage, job = context_of(request).lineage, _job_id(request)
    wanted = request.path_params["version"]
    for version in await run_read(request, _versions, lineage, job):
        if version.version == wanted:
            return json_response(version)
    raise EntityNotFoundError(f"{job}#{wanted}")


def _job_id(request: Request) -> JobId:
    return job_id(request.path_params["namespace"], request.path_params["job"])


async def _list(request: Request, namespace: str | None) -> Response:
    lineage = context_of(request).lineage
    states = _read_states(request.query_params.getlist("lastRunStates"))
    page = read_page(request)
    return json_response(await run_read(request, _list_jobs, lineage, namespace, states, page))


def _read_states(texts: Iterable[str]) -> set[RunState]:
    names = [name.strip().upper() for text in texts for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _STATES:
            raise InvalidRequestError(
                "lastRunStates", f"{name!r} is not one of {', '.join(_STATES)}"
            )
    return {state for name in names for state in _STATES[name]}


async def _set_tag(request: Request, *, present: bool) -> Response:
    lineage, job = context_of(request).lineage, _job_id(request)
    await run_read(request, _get_job, lineage, job)
    tag = request.path_params["tag"]
    await run_in_threadpool(lineage.registry.set_tag, job, tag, present=present)
    return json_response(await run_read(request, _get_job, lineage, job))


def _list_jobs(
    lineage: Lineage, namespace: str | None, states: set[RunState], page: ListPage
) -> MarquezJobs:
    if namespace is not None:
        lineage.directory.namespace(namespace)
    with lineage.session.reading() as view:
        numbers, total = lineage.directory.job_ids(namespace, states, *page)
        return MarquezJobs(_describe_jobs(view, numbers, RUN_FIELDS), total)


def _get_job(lineage: Lineage, job: JobId) -> MarquezJob:
    with lineage.session.reading() as view:
        number = lineage.directory.get_node(job, view)
        return _describe_jobs(view, [number])[0]


def _put_job(lineage: Lineage, job: JobId, body: JobRequest) -> None:
    lineage.directory.namespace(job.namespace)
    entry = JobEntry(
        type=body.type,
        inputs=_datasets(body.inputs),
        outputs=_datasets(body.outputs),
        location=body.location or "",
        description=body.description or "",
        tags=body.tags or [],
        run=body.run_id,
    )
    lineage.registry.put_job(job.namespace, job.name, entry)


def _datasets(names: Iterable[MarquezName]) -> list[DatasetId]:
    return [dataset_id(name.namespace, name.name) for name in names]


def _describe_jobs(
    view: CatalogSnapshot, numbers: Sequence[int], run_facets: Sequence[str] = ()
) -> list[MarquezJob]:
    """Return jobs with their latest runs. Those before the last have all facets or some."""
    facts = GraphFacts(view, np.array(sorted(set(numbers)), np.int32))
    nodes = GraphNodes(facts, RunFacts(view, numbers))
    latest = view.reader.runs.latest_of_each(numbers, _LATEST)
    listed = [(job, run) for job in numbers for run in latest.get(job, ())]
    older: dict[int, list[RunData]] = {}
    described = describe_runs(view, listed, run_facets) if listed else []
    for (job, _), run in zip(listed, described, strict=True):
        older.setdefault(job, []).append(run)
    return [_describe_job(nodes, facts, number, older.get(number, [])) for number in numbers]


def _describe_job(
    nodes: GraphNodes, facts: GraphFacts, number: int, runs: list[RunData]
) -> MarquezJob:
    data, facets = nodes.job(number), facts.facets(number)
    if data.latest_run is not None:
        runs = [data.latest_run if run.id == data.latest_run.id else run for run in runs]
    return MarquezJob(
        **{field: getattr(data, field) for field in data.__struct_fields__},
        current_version=nodes.job_version(number).version,
        latest_runs=runs or None,
        labels=_labels(facets.get(JOB_TYPE)),
        tags=sorted(parse_tags(facets.get(TAGS)).whole),
    )


def _labels(job_type: bytes | None) -> list[str]:
    facet = parse_job_type(job_type)
    return [label for label in (facet.jobType, facet.integration) if label]


def _versions(lineage: Lineage, job: JobId) -> list[MarquezJobVersion]:
    """Return the versions of a job, the newest first. One begins with a new input or output."""
    with lineage.session.reading() as view:
        number = lineage.directory.get_node(job, view)
        described = _describe_jobs(view, [number])[0]
        seen = _first_seen(view, number)
    moments: list[int | None] = [*sorted({at for _, _, at in seen})] or [None]
    versions = []
    for moment in moments:
        sides: dict[EdgeKind, list[MarquezName]] = {EdgeKind.READS: [], EdgeKind.WRITES: []}
        for kind, name, at in seen:
            if moment is None or at <= moment:
                sides[kind].append(name)
        inputs, outputs = sorted(sides[EdgeKind.READS]), sorted(sides[EdgeKind.WRITES])
        version = job_version(described.id, tuple(inputs), tuple(outputs), described.location or "")
        versions.append(
            MarquezJobVersion(
                id=MarquezVersion(job.namespace, job.name, version),
                name=job.name,
                created_at=described.created_at if moment is None else render_time(moment),
                version=version,
                namespace=job.namespace,
                location=described.location,
                inputs=inputs,
                outputs=outputs,
                latest_run=described.latest_run if moment == moments[-1] else None,
            )
        )
    return versions[::-1]


def _first_seen(view: CatalogSnapshot, job: int) -> list[tuple[EdgeKind, MarquezName, int]]:
    """Return the inputs and outputs of a job, and when each was first seen."""
    graph = view.graph.nodes
    here, flow = np.array([job], np.int32), graph.flow
    first_seen: dict[tuple[EdgeKind, int], int] = {}
    for kind, rows, far in (
        (EdgeKind.READS, flow.ends.entering, flow.ends.source),
        (EdgeKind.WRITES, flow.ends.leaving, flow.ends.target),
    ):
        edges = rows.of(here)
        edges = edges[flow.kind[edges] == kind]
        datasets = graph.identities.canonicals(far[edges]).tolist()
        for dataset, at in zip(datasets, flow.first_at.of(edges).tolist(), strict=True):
            first_seen[kind, dataset] = min(at, first_seen.get((kind, dataset), at))
    names = graph.identities.display_names(
        {dataset for _, dataset in first_seen}, view.reader, as_sent=True
    )
    return [
        (kind, MarquezName(names[dataset].id.namespace, names[dataset].id.name), at)
        for (kind, dataset), at in first_seen.items()
    ]


_JOBS = "/api/v1/namespaces/{namespace}/jobs"
_JOB = f"{_JOBS}/{{job}}"
_LISTED = ("lastRunStates", *PAGE)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/jobs",
        list_marquez_jobs,
        KeyRole.READER,
        answers(MarquezJobs, 400),
        query=_LISTED,
    ),
    Endpoint(
        "GET",
        _JOBS,
        list_marquez_jobs_of_namespace,
        KeyRole.READER,
        answers(MarquezJobs, 400, 404),
        query=_LISTED,
    ),
    Endpoint("GET", _JOB, get_marquez_job, KeyRole.READER, answers(MarquezJob, 404)),
    Endpoint(
        "PUT",
        _JOB,
        put_marquez_job,
        KeyRole.WRITER,
        answers(MarquezJob, 400, 404, 413, 503),
        body=JobRequest,
    ),
    Endpoint("DELETE", _JOB, delete_marquez_job, KeyRole.WRITER, answers(MarquezJob, 404, 503)),
    Endpoint(
        "GET",
        f"{_JOB}/versions",
        list_marquez_job_versions,
        KeyRole.READER,
        answers(MarquezJobVersions, 400, 404),
        query=PAGE,
    ),
    Endpoint(
        "GET",
        f"{_JOB}/versions/{{version}}",
        get_marquez_job_version,
        KeyRole.READER,
        answers(MarquezJobVersion, 404),
    ),
    *(
        Endpoint(
            method,
            f"{_JOB}/tags/{{tag}}",
            handler,
            KeyRole.WRITER,
            answers(MarquezJob, 400, 404, 503),
        )
        for method, handler in (
            ("POST", post_marquez_job_tag),
            ("DELETE", delete_marquez_job_tag),
        )
    ),
)
