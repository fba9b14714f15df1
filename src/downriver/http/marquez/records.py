"""Datasets, jobs and runs as Marquez describes them in a graph."""

from __future__ import annotations

from typing import Literal

import msgspec


class MarquezEdge(msgspec.Struct, frozen=True, order=True):
    """An edge, by the ids of its ends."""

    origin: str
    destination: str


class MarquezName(msgspec.Struct, frozen=True, order=True):
    """A dataset or job by namespace and name."""

    namespace: str
    name: str


class MarquezVersion(msgspec.Struct):
    """One version of a dataset or job."""

    namespace: str
    name: str
    version: str


class RunDatasetVersion(msgspec.Struct, rename="camel"):
    """A dataset as a run read or wrote it, with the facets of the input or output."""

    dataset_version_id: MarquezVersion
    facets: dict[str, msgspec.Raw]


class MarquezField(msgspec.Struct):
    """A column of a dataset."""

    name: str
    type: str
    tags: list[str]
    description: str | None


class DatasetData(msgspec.Struct, rename="camel", tag_field="entity", tag="dataset"):
    """A dataset, as Marquez describes it. `facets` is an addition."""

    id: MarquezName
    type: str
    name: str
    physical_name: str
    created_at: str
    updated_at: str
    namespace: str
    source_name: str
    fields: list[MarquezField]
    tags: list[str]
    last_modified_at: str | None
    description: str | None
    last_lifecycle_state: str
    facets: dict[str, msgspec.Raw]


class RunData(msgspec.Struct, rename="camel"):
    """A run, as Marquez describes it."""

    id: str
    created_at: str
    updated_at: str
    nominal_start_time: str | None
    nominal_end_time: str | None
    state: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    args: dict[str, str]
    job_version: MarquezVersion
    input_dataset_versions: list[RunDatasetVersion]
    output_dataset_versions: list[RunDatasetVersion]
    facets: dict[str, msgspec.Raw]


class JobData(msgspec.Struct, rename="camel", tag_field="entity", tag="job"):
    """A job, as Marquez describes it. `facets` is an addition."""

    id: MarquezName
    type: str
    name: str
    simple_name: str
    parent_job_name: str | None
    parent_job_uuid: str | None
    current_run_uuid: str | None
    created_at: str
    updated_at: str
    namespace: str
    inputs: list[MarquezName]
    outputs: list[MarquezName]
    location: str | None
    description: str | None
    latest_run: RunData | None
    facets: dict[str, msgspec.Raw]


class MarquezNode(msgspec.Struct, rename="camel"):
    """A node of the graph with its edges."""

    id: str
    type: Literal["DATASET", "JOB"]
    data: DatasetData | JobData
    in_edges: list[MarquezEdge]
    out_edges: list[MarquezEdge]


class LineageGraph(msgspec.Struct, rename="camel", omit_defaults=True):
    """The answer of `GET /api/v1/lineage`.

    `truncated` and `omittedCount` are additions to Marquez. They are present only if nodes are
    omitted because of the depth or the limit.
    """

    graph: list[MarquezNode]
    truncated: bool = False
    omitted_count: int = 0
