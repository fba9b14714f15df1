"""The bodies of requests and answers of Marquez's lists, with its names of keys."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from downriver.http.marquez.records import (
    DatasetData,
    JobData,
    MarquezName,
    MarquezVersion,
    RunData,
)


class MarquezNamespace(msgspec.Struct, rename="camel"):
    """A namespace."""

    name: str
    created_at: str
    updated_at: str
    owner_name: str
    description: str | None
    is_hidden: bool


class MarquezNamespaces(msgspec.Struct):
    """A page of namespaces."""

    namespaces: list[MarquezNamespace]


class NamespaceRequest(msgspec.Struct, rename="camel"):
    """The owner of a namespace."""

    owner_name: str
    description: str | None = None


class MarquezDataSource(msgspec.Struct, rename="camel"):
    """A system that holds datasets."""

    type: str
    name: str
    created_at: str
    updated_at: str
    connection_url: str
    description: str | None


class MarquezSources(msgspec.Struct):
    """A page of sources."""

    sources: list[MarquezDataSource]


class SourceRequest(msgspec.Struct, rename="camel"):
    """Where a source is."""

    type: str
    connection_url: str
    description: str | None = None


class MarquezTag(msgspec.Struct):
    """A tag and its description."""

    name: str
    description: str | None


class MarquezTags(msgspec.Struct):
    """A page of tags."""

    tags: list[MarquezTag]


class MarquezTagRequest(msgspec.Struct):
    """What a tag means."""

    description: str | None = None


class FieldRequest(msgspec.Struct):
    """A column of a dataset to register."""

    name: str
    type: str | None = None
    tags: list[str] | None = None
    description: str | None = None


class DatasetRequest(msgspec.Struct, rename="camel"):
    """A dataset to register."""

    type: Literal["DB_TABLE", "STREAM"]
    physical_name: str
    source_name: str
    fields: list[FieldRequest] | None = None
    tags: list[str] | None = None
    description: str | None = None
    run_id: str | None = None
    schema_location: str | None = None


class InputColumn(msgspec.Struct, rename="camel"):
    """A column from which another derives."""

    namespace: str
    dataset: str
    field: str
    transformation_description: str | None
    transformation_type: str | None


class MarquezColumnLineage(msgspec.Struct, rename="camel"):
    """A column of a dataset and those from which it derives."""

    name: str
    input_fields: list[InputColumn]
    transformation_description: str | None
    transformation_type: str | None


class MarquezDataset(DatasetData, rename="camel", tag=False):
    """A dataset."""

    current_version: str
    column_lineage: list[MarquezColumnLineage] | None
    deleted: bool
    schema_location: str | msgspec.UnsetType = msgspec.UNSET  # of a stream


class MarquezDatasets(msgspec.Struct, rename="camel"):
    """A page of datasets."""

    datasets: list[MarquezDataset]
    total_count: int


class MarquezDatasetVersion(msgspec.Struct, rename="camel"):
    """A dataset as it was since a change of its columns."""

    id: MarquezVersion
    type: str
    name: str
    physical_name: str
    created_at: str
    version: str
    namespace: str
    source_name: str
    fields: list[Any]
    tags: list[str]
    lifecycle_state: str
    description: str | None
    current_schema_version: str
    created_by_run: RunData | None
    facets: dict[str, msgspec.Raw]


class MarquezDatasetVersions(msgspec.Struct, rename="camel"):
    """A page of versions, the newest first."""

    versions: list[MarquezDatasetVersion]
    total_count: int


class JobRequest(msgspec.Struct, rename="camel"):
    """A job to register."""

    type: Literal["BATCH", "STREAM", "SERVICE"]
    inputs: list[MarquezName] = []
    outputs: list[MarquezName] = []
    location: str | None = None
    description: str | None = None
    tags: list[str] | None = None
    run_id: str | None = None


class MarquezJob(JobData, rename="camel", tag=False):
    """A job with its latest runs, the newest first, or None if it has none."""

    current_version: str
    latest_runs: list[RunData] | None
    labels: list[str]
    tags: list[str]


class MarquezJobs(msgspec.Struct, rename="camel"):
    """A page of jobs."""

    jobs: list[MarquezJob]
    total_count: int


class MarquezJobVersion(msgspec.Struct, rename="camel"):
    """A job as it was since a change of its inputs and outputs."""

    id: MarquezVersion
    name: str
    created_at: str
    version: str
    namespace: str
    location: str | None
    inputs: list[MarquezName]
    outputs: list[MarquezName]
    latest_run: RunData | None


class MarquezJobVersions(msgspec.Struct, rename="camel"):
    """A page of versions, the newest first."""

    versions: list[MarquezJobVersion]
    total_count: int


class RunRequest(msgspec.Struct, rename="camel"):
    """A run to create."""

    id: str | None = None
    nominal_start_time: str | None = None
    nominal_end_time: str | None = None
    args: dict[str, str] | None = None


class MarquezRuns(msgspec.Struct, rename="camel"):
    """A page of runs, the latest first."""

    runs: list[RunData]
    total_count: int


class MarquezRunFacets(msgspec.Struct, rename="camel"):
    """The facets of a run or of its job."""

    run_id: str
    facets: dict[str, msgspec.Raw]


class MarquezSearchResult(msgspec.Struct, rename="camel"):
    """A dataset or job whose name contains the text."""

    type: Literal["DATASET", "JOB"]
    name: str
    updated_at: str
    namespace: str
    node_id: str


class MarquezSearchResults(msgspec.Struct, rename="camel"):
    """What a search found."""

    total_count: int
    results: list[MarquezSearchResult]


class MarquezSearchHits(msgspec.Struct):
    """What a search found, and the words of each hit between `<em>` and `</em>`."""

    hits: list[dict[str, Any]]
    highlights: list[dict[str, list[str]]]


class MarquezEvents(msgspec.Struct, rename="camel"):
    """A page of events of runs, as they were sent."""

    events: list[msgspec.Raw]
    total_count: int


class EventCounts(msgspec.Struct, rename="camel"):
    """The events of an hour or a day by their type."""

    start_interval: str
    end_interval: str
    fail: int
    start: int
    complete: int
    abort: int


class IntervalCount(msgspec.Struct, rename="camel"):
    """How many there were at the end of an hour or a day."""

    start_interval: str
    end_interval: str
    count: int
