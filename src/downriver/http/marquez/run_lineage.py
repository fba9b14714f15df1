"""`GET /api/v1/runlineage/upstream`: the runs whose output a run has read, and theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from downriver.errors import EntityNotFoundError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.graph_facts import GraphFacts
from downriver.http.marquez.graph_nodes import RUN_STATES
from downriver.http.marquez.records import MarquezName, MarquezVersion
from downriver.http.marquez.versions import dataset_version, job_version
from downriver.http.request import context_of, json_response, query_number, query_text, run_read
from downriver.model.facts import EdgeKind, RunState
from downriver.openlineage.facets.dataset import SCHEMA
from downriver.openlineage.facets.job import parse_source_code_location
from downriver.openlineage.wire import render_time
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot
    from downriver.service import Lineage
    from downriver.store.catalog.history import JobRun

_DEFAULT_DEPTH = 20
_MOST_RUNS = 1_000
_RUNS_OF_WRITER = 20  # candidates for the run that wrote an input


class UpstreamRunTimes(msgspec.Struct):
    """A run with its times and state, as Marquez describes it."""

    id: str
    start: str | None
    end: str | None
    status: str


class UpstreamInput(msgspec.Struct, rename="camel"):
    """A dataset that a run has read, and the run that wrote it before."""

    namespace: str
    name: str
    version: str
    produced_by_run_id: str | None


class UpstreamRun(msgspec.Struct):
    """A run with its job and inputs."""

    job: MarquezVersion
    run: UpstreamRunTimes
    inputs: list[UpstreamInput]


class UpstreamRunLineage(msgspec.Struct):
    """The answer of `GET /api/v1/runlineage/upstream`: the run itself first."""

    runs: list[UpstreamRun]


async def get_upstream_runs(request: Request) -> Response:
    """Return the runs upstream of a run: `?runId=&depth=`."""
    run = query_text(request, "runId")
    depth = query_number(request, "depth", _DEFAULT_DEPTH, 10_000)
    lineage = context_of(request).lineage
    return json_response(await run_read(request, upstream_runs, lineage, run, depth))


def upstream_runs(lineage: Lineage, run: str, depth: int | None) -> UpstreamRunLineage:
    """Return a run and those whose output it has read, directly or not."""
    deepest = _DEFAULT_DEPTH if depth is None else depth
    with lineage.session.reading() as view:
        found = view.reader.run_history.find_runs(run)
        if not found:
            raise EntityNotFoundError(run)
        runs = _UpstreamRuns(view)
        level, answer, seen = found[:1], list[UpstreamRun](), {found[0].number}
        for _ in range(deepest + 1):
            before: dict[int, JobRun] = {}
            for reached in level:
                inputs = runs.inputs(reached)
                answer.append(runs.render(reached, inputs))
                producers = (read.producer for read in inputs if read.producer is not None)
                before |= {run.number: run for run in producers if run.number not in seen}
            seen |= before.keys()
            level = list(before.values())[: _MOST_RUNS - len(answer)]
    return UpstreamRunLineage(answer)


class _ReadInput(NamedTuple):
    name: MarquezName
    version: str
    producer: JobRun | None


class _UpstreamRuns:
    """Finds the datasets that runs have read, and the runs that wrote them."""

    def __init__(self, view: CatalogSnapshot) -> None:
        self._view = view
        self._known: dict[int, GraphFacts] = {}

    def inputs(self, run: JobRun) -> list[_ReadInput]:
        """Return the datasets that events of a run name as inputs."""
        facts, until = self._facts(run.job), run.ended_at or run.state_at
        read_inputs = []
        for listed in facts.inputs.get(run.job, ()):
            if listed.first_at <= until and listed.last_at >= run.first_at:
                (name,) = facts.dataset_names([listed])
                version = dataset_version(name, facts.facets(listed.number).get(SCHEMA))
                read_inputs.append(_ReadInput(name, version, self._producer(listed.number, run)))
        return sorted(read_inputs, key=lambda read: read.name)

    def _facts(self, job: int) -> GraphFacts:
        if job not in self._known:
            self._known[job] = GraphFacts(self._view, np.array([job], np.int32))
        return self._known[job]

    def _producer(self, dataset: int, reader: JobRun) -> JobRun | None:
        """Return the run that completed a write of a dataset last before a run began."""
        graph = self._view.graph.nodes
        names = graph.identities.group(dataset)
        writers = graph.neighbours(names, EdgeKind.WRITES, downstream=False)
        runs = [
            run
            for job in {job for jobs in writers.values() for job in jobs}
            for run in self._view.reader.history.runs(job, _RUNS_OF_WRITER, reader.began_at)
            if run.state is RunState.COMPLETE
            and run.state_at <= reader.began_at
            and run.number != reader.number
        ]
        return max(runs, key=lambda run: (run.state_at, run.number), default=None)

    def render(self, run: JobRun, inputs: list[_ReadInput]) -> UpstreamRun:
        """Return a run as the answer shows it."""
        facts, ended = self._facts(run.job), run.ended_at
        node = facts.names[run.job]
        version = job_version(
            MarquezName(node.namespace, node.name),
            facts.dataset_names(facts.inputs.get(run.job, ())),
            facts.dataset_names(facts.outputs.get(run.job, ())),
            parse_source_code_location(facts.facets(run.job)).url,
        )
        return UpstreamRun(
            MarquezVersion(node.namespace, node.name, version),
            UpstreamRunTimes(
                run.run,
                None if run.started_at is None else render_time(run.started_at),
                None if ended is None else render_time(ended),
                RUN_STATES[run.state],
            ),
            [
                UpstreamInput(
                    read.name.namespace,
                    read.name.name,
                    read.version,
                    None if read.producer is None else read.producer.run,
                )
                for read in inputs
            ],
        )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/runlineage/upstream",
        get_upstream_runs,
        KeyRole.READER,
        answers(UpstreamRunLineage, 400, 404),
        query=("runId", "depth"),
    ),
)
