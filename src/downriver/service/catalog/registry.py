"""Registrations, tags, deletions and runs that users create. All of them are events in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.model.ids import (
    NAMESPACE_RECORDS,
    SOURCE_RECORDS,
    TAG_RECORDS,
    DatasetId,
    JobId,
)
from downriver.openlineage.events import dataset, dataset_event, job_event, run_event
from downriver.openlineage.facets.base import Facets, dataset_id, job_id
from downriver.openlineage.facets.custom import (
    DELETED,
    RECORD,
    RUN_ARGUMENTS,
    RecordFacet,
    render_deleted,
    render_record,
    render_run_arguments,
)
from downriver.openlineage.facets.dataset import (
    DATA_SOURCE,
    SCHEMA,
    SchemaField,
    render_data_source,
    render_schema,
)
from downriver.openlineage.facets.description import DOCUMENTATION, render_description
from downriver.openlineage.facets.job import (
    JOB_TYPE,
    NOMINAL_TIME,
    SOURCE_CODE_LOCATION,
    NominalTimeFacet,
    render_job_type,
    render_nominal_time,
    render_source_code_url,
)
from downriver.openlineage.facets.label_statement import render_tag_facets
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.model.ids import NodeId
    from downriver.openlineage import Event
    from downriver.service.session import StoreSession
    from downriver.store import CatalogReader

NO_STATE = "OTHER"  # an event that does not change the state of a run


class DatasetEntry(msgspec.Struct, kw_only=True):
    """A dataset that a person registers."""

    type: str
    physical_name: str
    source_name: str
    schema_location: str = ""
    description: str = ""
    columns: list[SchemaField] = []
    tags: list[str] = []
    column_tags: dict[str, list[str]] = {}
    run: str | None = None


class JobEntry(msgspec.Struct, kw_only=True):
    """A job that a person registers."""

    type: str
    inputs: list[DatasetId] = []
    outputs: list[DatasetId] = []
    location: str = ""
    description: str = ""
    tags: list[str] = []
    run: str | None = None


class RegistryApi:
    """Registers, tags and deletes datasets and jobs, and creates runs."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def put_namespace(self, name: str, record: RecordFacet) -> None:
        """Register a namespace with its owner."""
        self._put_record(DatasetId(NAMESPACE_RECORDS, name), record)

    def put_source(self, name: str, record: RecordFacet) -> None:
        """Register a system that holds datasets."""
        self._put_record(DatasetId(SOURCE_RECORDS, name), record)

    def put_tag(self, name: str, record: RecordFacet) -> None:
        """Register a tag with its description."""
        self._put_record(DatasetId(TAG_RECORDS, name.lower()), record)

    def put_dataset(self, namespace: str, name: str, entry: DatasetEntry) -> DatasetId:
        """Register a dataset, as an output of a run if one is given."""
        node = dataset_id(namespace, name)
        facets = _dataset_facets(entry)
        with self._session.store.reader() as reader:
            at = moment_after(reader, node)
            job = None if entry.run is None else _job_of(reader, entry.run)
        if job is None or entry.run is None:
            self._session.ingest([dataset_event(node, at, facets)])
        else:
            outputs = [dataset(node, facets)]
            self._session.ingest([run_event(job, entry.run, NO_STATE, at, outputs=outputs)])
        return node

    def put_job(self, namespace: str, name: str, entry: JobEntry) -> JobId:
        """Register a job with its inputs and outputs, as those of a run if one is given."""
        node = job_id(namespace, name)
        datasets = {*entry.inputs, *entry.outputs}
        with self._session.store.reader() as reader:
            at = moment_after(reader, node)
            known = reader.nodes.find_each(datasets)
            of_run = None if entry.run is None else _job_of(reader, entry.run)
        for missing in sorted(datasets - known.keys()):
            raise EntityNotFoundError(str(missing))
        if of_run is not None and of_run != node:
            raise EntityNotFoundError(entry.run or "")
        inputs = [dataset(item) for item in entry.inputs]
        outputs = [dataset(item) for item in entry.outputs]
        facets = _job_facets(entry)
        event = (
            job_event(node, at, inputs=inputs, outputs=outputs, facets=facets)
            if entry.run is None
            else run_event(
                node, entry.run, NO_STATE, at, inputs=inputs, outputs=outputs, facets=facets
            )
        )
        self._session.ingest([event])
        return node

    def set_tag(self, node: NodeId, tag: str, field: str = "", *, present: bool) -> None:
        """Set or remove a tag of a dataset, of one of its columns, or of a job."""
        if not tag.strip():
            raise InvalidRequestError("tag", "empty")
        facets = render_tag_facets(tag, field, present=present)
        with self._session.store.reader() as reader:
            at = moment_after(reader, node)
        self._session.ingest([_declare(node, at, facets)])

    def delete(self, nodes: Sequence[NodeId]) -> None:
        """Hide datasets and jobs until a later event mentions them again."""
        with self._session.store.reader() as reader:
            at = moment_after(reader, *nodes)
        self._session.ingest_many([_declare(node, at, _deletion()) for node in nodes])

    def delete_namespace(self, name: str) -> None:
        """Hide a namespace with all its datasets and jobs."""
        with self._session.store.reader() as reader:
            numbers = reader.directory.nodes_in(name)
            nodes = list(reader.nodes.by_ids(numbers).values())
        self.delete([*nodes, DatasetId(NAMESPACE_RECORDS, name)])

    def create_run(
        self,
        job: JobId,
        run: str | None,
        nominal: NominalTimeFacet,
        arguments: Mapping[str, str],
    ) -> str:
        """Create a run that has not started, and return its id."""
        run = run or str(uuid4())
        with self._session.store.reader() as reader:
            if reader.run_history.find_runs(run):
                raise InvalidRequestError("id", f"a run {run!r} exists already")
            at = moment_after(reader, job)
        facets: Facets = {RUN_ARGUMENTS: render_run_arguments(arguments)}
        if nominal != NominalTimeFacet():
            facets[NOMINAL_TIME] = render_nominal_time(nominal)
        self._session.ingest([run_event(job, run, NO_STATE, at, run_facets=facets)])
        return run

    def mark_run(self, run: str, state: str, at: int | None) -> None:
        """Record that a run started or ended."""
        with self._session.store.reader() as reader:
            job = _job_of(reader, run)
        self._session.ingest([run_event(job, run, state, now() if at is None else at)])

    def _put_record(self, node: DatasetId, record: RecordFacet) -> None:
        with self._session.store.reader() as reader:
            at = moment_after(reader, node)
        self._session.ingest([dataset_event(node, at, {RECORD: render_record(record)})])


def moment_after(reader: CatalogReader, *nodes: NodeId) -> int:
    """Return this moment, or just after the last event about a node if its clock is ahead."""
    known = reader.nodes.find_each(nodes).values()
    last = max((span.last.at for span in reader.nodes.spans(known).values()), default=0)
    return max(now(), last + 1)


def _job_of(reader: CatalogReader, run: str) -> JobId:
    runs = reader.run_history.find_runs(run)
    if not runs:
        raise EntityNotFoundError(run)
    job = reader.nodes.by_ids([runs[0].job])[runs[0].job]
    return JobId(job.namespace, job.name)


def _declare(node: NodeId, at: int, facets: Facets) -> Event:
    if isinstance(node, JobId):
        return job_event(node, at, facets=facets)
    return dataset_event(node, at, facets)


def _deletion() -> Facets:
    return {DELETED: render_deleted()}


def _dataset_facets(entry: DatasetEntry) -> Facets:
    record = RecordFacet(
        type=entry.type,
        physicalName=entry.physical_name,
        sourceName=entry.source_name,
        schemaLocation=entry.schema_location,
    )
    facets: Facets = {
        RECORD: render_record(record),
        DATA_SOURCE: render_data_source("", entry.source_name),
        **_tag_facets(entry.tags),
    }
    if entry.columns:
        facets[SCHEMA] = render_schema(entry.columns)
    if entry.description:
        facets[DOCUMENTATION] = render_description("Dataset", entry.description)
    for column, tags in entry.column_tags.items():
        facets |= _tag_facets(tags, column)
    return facets


def _job_facets(entry: JobEntry) -> Facets:
    facets: Facets = {
        RECORD: render_record(RecordFacet(type=entry.type)),
        JOB_TYPE: render_job_type("DOWNRIVER", "JOB", streaming=entry.type == "STREAM"),
        **_tag_facets(entry.tags),
    }
    if entry.location:
        facets[SOURCE_CODE_LOCATION] = render_source_code_url(entry.location)
    if entry.description:
        facets[DOCUMENTATION] = render_description("Job", entry.description)
    return facets


def _tag_facets(tags: Iterable[str], column: str = "") -> Facets:
    facets: Facets = {}
    for tag in tags:
        if tag.strip():
            facets |= render_tag_facets(tag, column, present=True)
    return facets
