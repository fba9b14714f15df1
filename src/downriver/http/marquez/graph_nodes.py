"""Datasets, jobs and runs in the format of Marquez, rendered from facts that were read together."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from downriver.http.marquez.records import (
    DatasetData,
    JobData,
    MarquezField,
    MarquezName,
    MarquezVersion,
    RunData,
    RunDatasetVersion,
)
from downriver.http.marquez.versions import dataset_version, job_version, node_uuid
from downriver.model.facts import FacetRole, RunState
from downriver.model.ids import JobId
from downriver.openlineage.facets.custom import (
    RECORD,
    RUN_ARGUMENTS,
    parse_record,
    parse_run_arguments,
)
from downriver.openlineage.facets.dataset import (
    DATA_SOURCE,
    LIFECYCLE,
    SCHEMA,
    parse_data_source_name,
    parse_lifecycle,
    schema_columns,
)
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    TAGS,
    Tags,
    parse_description,
    parse_tags,
)
from downriver.openlineage.facets.job import (
    JOB_TYPE,
    NOMINAL_TIME,
    PARENT,
    SOURCE_CODE_LOCATION,
    parse_job_type,
    parse_nominal_time,
    parse_parent_run,
    parse_source_code_location,
)
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.http.marquez.graph_facts import GraphFacts, JobDataset, RunFacts
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.job import NominalTimeFacet, ParentRun
    from downriver.store import Run
    from downriver.store.catalog.run_history import RunFacet

# The facets with the times, state and arguments of a run.
RUN_FIELDS = (NOMINAL_TIME, PARENT, RUN_ARGUMENTS)
NO_TAGS = Tags(frozenset(), {})
RUN_STATES = {
    RunState.OTHER: "RUNNING",
    RunState.START: "RUNNING",
    RunState.RUNNING: "RUNNING",
    RunState.COMPLETE: "COMPLETED",
    RunState.ABORT: "ABORTED",
    RunState.FAIL: "FAILED",
}


class GraphNodes:
    """Renders datasets and jobs whose facts were read together."""

    def __init__(self, facts: GraphFacts, runs: RunFacts) -> None:
        self._facts = facts
        self._runs = runs
        self._names = {n: MarquezName(i.namespace, i.name) for n, i in facts.names.items()}
        self._versions_of: dict[int, MarquezVersion] = {}

    def data(self, number: int) -> DatasetData | JobData:
        """Return a dataset, or a job with its latest run."""
        is_job = isinstance(self._facts.names[number], JobId)
        return self.job(number) if is_job else self.dataset(number)

    def dataset(self, number: int) -> DatasetData:
        """Return a dataset."""
        record, facets = self._facts.record(number), self._facts.facets(number)
        written_at = self._facts.written_at.get(number)
        tags, column_tags = parse_tags(facets[TAGS]) if TAGS in facets else NO_TAGS
        fields = _fields(facets[SCHEMA]) if SCHEMA in facets else []
        if column_tags:
            fields = [
                MarquezField(
                    field.name,
                    field.type,
                    sorted(column_tags.get(field.name.casefold(), ())),
                    field.description,
                )
                for field in fields
            ]
        registered = parse_record(facets.get(RECORD))
        return DatasetData(
            id=self._names[number],
            type=registered.type or "DB_TABLE",
            name=record.id.name,
            physical_name=registered.physicalName or self._facts.usual_names[number].name,
            created_at=render_time(record.first_at),
            updated_at=render_time(record.last_at),
            namespace=record.id.namespace,
            source_name=_source_name(facets.get(DATA_SOURCE)) or record.id.namespace,
            fields=fields,
            tags=sorted(tags),
            last_modified_at=None if written_at is None else render_time(written_at),
            description=parse_description(facets.get(DOCUMENTATION)) or None,
            last_lifecycle_state=_lifecycle(facets.get(LIFECYCLE)),
            facets=_raw(facets),
        )

    def job(self, number: int) -> JobData:
        """Return a job with its latest run."""
        record, facets = self._facts.record(number), self._facts.facets(number)
        run = self._runs.latest.get(number)
        run_facets = [] if run is None else self._runs.facets[run.number]
        own = {facet.name: facet.body for facet in run_facets if facet.role is FacetRole.RUN}
        name = record.id.name
        parent = _other_parent(record.id, _parent(own.get(PARENT) or facets.get(PARENT)))
        return JobData(
            id=self._names[number],
            type=parse_record(facets.get(RECORD)).type
            or ("STREAM" if _is_streaming(facets.get(JOB_TYPE)) else "BATCH"),
            name=name,
            simple_name=name.removeprefix(f"{parent.name}.") if parent else name,
            parent_job_name=parent.name if parent else None,
            parent_job_uuid=node_uuid(parent) if parent else None,
            current_run_uuid=run.run if run else None,
            created_at=render_time(record.first_at),
            updated_at=render_time(record.last_at),
            namespace=record.id.namespace,
            inputs=self.inputs(number),
            outputs=self.outputs(number),
            location=self._location(number) or None,
            description=parse_description(facets.get(DOCUMENTATION)) or None,
            latest_run=None if run is None else self.run(number, run, run_facets),
            facets=_raw(facets),
        )

    def inputs(self, job: int) -> list[MarquezName]:
        """Return the datasets that a job reads."""
        return list(self._facts.dataset_names(self._facts.inputs.get(job, ())))

    def outputs(self, job: int) -> list[MarquezName]:
        """Return the datasets that a job writes."""
        return list(self._facts.dataset_names(self._facts.outputs.get(job, ())))

    def job_version(self, job: int) -> MarquezVersion:
        """Return the present version of a job."""
        name, location = self._names[job], self._location(job)
        version = job_version(name, tuple(self.inputs(job)), tuple(self.outputs(job)), location)
        return MarquezVersion(name.namespace, name.name, version)

    def _location(self, job: int) -> str:
        facets = self._facts.facets(job)
        return parse_source_code_location(facets).url if SOURCE_CODE_LOCATION in facets else ""

    def run(self, job: int, run: Run, facets: list[RunFacet]) -> RunData:
        """Return a run of a job, given its facets and those of its inputs and outputs."""
        own = {facet.name: facet.body for facet in facets if facet.role is FacetRole.RUN}
        started, ended = run.started_at, run.ended_at
        # Marquez subtracts times in whole milliseconds.
        lasted = None if started is None or ended is None else ended // 1000 - started // 1000
        nominal = _nominal_time(own.get(NOMINAL_TIME))
        parent = _parent(own.get(PARENT))
        return RunData(
            id=run.run,
            created_at=render_time(run.first_at),
            updated_at=render_time(run.last_at),
            nominal_start_time=nominal.nominalStartTime or None,
            nominal_end_time=nominal.nominalEndTime or None,
            state=_state(run.state, created=RUN_ARGUMENTS in own),
            started_at=None if started is None else render_time(started),
            ended_at=None if ended is None else render_time(ended),
            duration_ms=lasted,
            args=_arguments(nominal.nominalStartTime, nominal.nominalEndTime, parent)
            | parse_run_arguments(own.get(RUN_ARGUMENTS)),
            job_version=self.job_version(job),
            input_dataset_versions=self._versions(
                self._facts.inputs.get(job, ()), run, facets, FacetRole.INPUT
            ),
            output_dataset_versions=self._versions(
                self._facts.outputs.get(job, ()), run, facets, FacetRole.OUTPUT
            ),
            facets=_raw(own),
        )

    def _versions(
        self,
        datasets: Iterable[JobDataset],
        run: Run,
        facets: list[RunFacet],
        role: FacetRole,
    ) -> list[RunDatasetVersion]:
        """Return the datasets that events of a run name, with the facets of that role."""
        sent: dict[int, dict[str, msgspec.Raw]] = {}
        for facet in facets:
            if facet.role is role:
                of_dataset = sent.setdefault(self._facts.canonical(facet.node), {})
                of_dataset[facet.name] = msgspec.Raw(facet.body)
        return [
            RunDatasetVersion(self._version(listed.number), sent.get(listed.number, {}))
            for listed in datasets
            if listed.last_at >= run.first_at
        ]

    def _version(self, number: int) -> MarquezVersion:
        known = self._versions_of.get(number)
        if known is None:
            name = self._names[number]
            version = dataset_version(name, self._facts.facets(number).get(SCHEMA))
            known = self._versions_of[number] = MarquezVersion(name.namespace, name.name, version)
        return known


def _other_parent(job: NodeId, parent: ParentRun | None) -> JobId | None:
    """Return the parent of a job.

    Old versions of Airflow's integration send the task itself, `dag.task`, instead of the DAG.
    """
    if parent is None or parent.job != job:
        return parent.job if parent else None
    dag, _, task = job.name.rpartition(".")
    return JobId(job.namespace, dag) if dag and task else None


def _state(state: RunState, *, created: bool) -> str:
    """Return the state of a run. A run that was created and has not started is new."""
    return "NEW" if created and state is RunState.OTHER else RUN_STATES[state]


def _arguments(start: str, end: str, parent: ParentRun | None) -> dict[str, str]:
    """Return the arguments of a run as Marquez derives them from its facets."""
    arguments = {"nominal_start_time": start, "nominal_end_time": end}
    if parent:
        arguments |= {
            "run_id": parent.run,
            "name": parent.job.name,
            "namespace": parent.job.namespace,
        }
    return {name: value for name, value in arguments.items() if value}


def _raw(facets: dict[str, bytes]) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(body) for name, body in facets.items()}


# Events repeat the same facets, so cache the parsed content.


@lru_cache(16_384)
def _fields(schema: bytes) -> list[MarquezField]:
    return [
        MarquezField(column.path, column.type, [], column.description or None)
        for column in schema_columns(schema)
    ]


@lru_cache(4_096)
def _source_name(body: bytes | None) -> str:
    return parse_data_source_name(body)


@lru_cache(4_096)
def _lifecycle(body: bytes | None) -> str:
    return parse_lifecycle(body)


@lru_cache(4_096)
def _is_streaming(body: bytes | None) -> bool:
    return parse_job_type(body).processingType.upper() in ("STREAM", "STREAMING")


@lru_cache(4_096)
def _nominal_time(body: bytes | None) -> NominalTimeFacet:
    return parse_nominal_time(body)


@lru_cache(16_384)
def _parent(body: bytes | None) -> ParentRun | None:
    return parse_parent_run(body)
