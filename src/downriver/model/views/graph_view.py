"""A part of the graph with the data that a screen shows: nodes, edges, columns, runs."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from downriver.model.answers import BlindSpot
from downriver.model.flows import EntityDetails
from downriver.model.governance import QualityResult

Change: TypeAlias = Literal["added", "removed", "changed"]
ColumnEdgeType: TypeAlias = Literal["DIRECT", "INDIRECT"]


class RunSummary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The state of a run. Times are ISO 8601."""

    id: str
    job: str
    state: str
    started_at: str | None = None
    ended_at: str | None = None
    duration_seconds: float | None = None


class GraphColumn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A column of a dataset. `marks` are those of its tags that a screen shows: `pii`."""

    name: str
    tags: list[str]
    marks: list[str]
    type: str | None = None
    description: str | None = None
    change: Change | None = None


class GraphNode(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A dataset or job.

    `upstream_total` and `downstream_total` count all direct neighbours, shown or not. `depth`
    counts the jobs between the node and the root: negative upstream, positive downstream. `type` is
    the asset type, `integration` what runs a job.
    """

    id: str
    kind: Literal["dataset", "job"]
    type: str
    namespace: str
    name: str
    label: str
    depth: int
    owners: list[str]
    tags: list[str]
    marks: list[str]
    aliases: list[str]
    statements: list[str]
    column_total: int
    upstream_total: int
    downstream_total: int
    blind_spot_count: int
    description: str | None = None
    integration: str | None = None
    columns: list[GraphColumn] | None = None
    last_run: RunSummary | None = None
    change: Change | None = None


class GraphEdge(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One step of the data between two nodes, with its evidence."""

    source: str
    target: str
    kind: str
    confidence: str
    status: Literal["active", "stale"]
    first_seen: str
    last_seen: str
    first_event: str
    last_event: str
    job: str | None = None
    change: Change | None = None


class Graph(msgspec.Struct, kw_only=True):
    """A part of the graph: `shown` nodes out of `total` that can be reached without limits."""

    root: str | None
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    complete: bool
    blind_spots: list[BlindSpot]
    shown: int
    total: int
    as_of: str | None


class EntityView(EntityDetails, kw_only=True):
    """All details of an entity, with its code, checks, last good run and raw facets.

    `source` is the file of a job's code, and the line if it is known.
    """

    sql: str | None
    source: str | None
    quality: list[QualityResult]
    last_good_run: RunSummary | None
    facets: dict[str, Any]


class Selection(msgspec.Struct, kw_only=True):
    """The datasets and jobs that a selector selects; `unknown` are criteria that match nothing."""

    ids: list[str]
    total: int
    unknown: list[str]


class ColumnPlace(msgspec.Struct, kw_only=True):
    """A column, by the id of its dataset and its name. `*` stands for all columns."""

    dataset: str
    column: str


class GraphColumnEdge(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How one column derives from another, with its evidence.

    `subtype` is `CONTAINS` between `*` and a column of the same dataset. `location` is the file,
    and the line if it is known, of the job.
    """

    source: ColumnPlace
    target: ColumnPlace
    type: ColumnEdgeType
    subtype: str
    masking: bool
    confidence: str
    status: Literal["active", "stale"]
    first_seen: str
    last_seen: str
    first_event: str
    last_event: str
    job: str | None = None
    description: str | None = None
    location: str | None = None
    change: Change | None = None


class ColumnEdges(msgspec.Struct, kw_only=True):
    """The column edges between datasets. `datasets` are the ids of all datasets in the edges."""

    edges: list[GraphColumnEdge]
    datasets: list[str]
    complete: bool
    blind_spots: list[BlindSpot]
    omitted_count: int
