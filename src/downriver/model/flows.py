"""Registered flows, and the entities around an entity: the same values on every surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct
from downriver.model.trust.tag_changes import EntityLabels

if TYPE_CHECKING:
    from collections.abc import Iterable


class Flow(MappingStruct, kw_only=True, omit_defaults=True):
    """Data that moves from one entity to another, as registered."""

    source_id: str
    target_id: str
    flow_type: str = "batch"
    transformation: str = ""
    schedule: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    pipeline: str | None = None


class RegisteredFlow(MappingStruct, kw_only=True):
    """A flow in the log; `source` and `target` are the ids it was registered between.

    `status` is `registered`, or `spooled` when the server was down and the flow is sent later.
    """

    flow_id: str
    source_id: str
    target_id: str
    flow_type: str
    transformation: str
    schedule: str | None
    pipeline: str | None
    source: str
    target: str
    registered_at: str
    status: str = "registered"


class RegisteredPipeline(MappingStruct, kw_only=True):
    """A pipeline in the log, with its flows."""

    pipeline_name: str
    steps_registered: int
    schedule: str | None
    flows: list[RegisteredFlow]


class Related(MappingStruct, kw_only=True, gc=False):
    """An entity upstream or downstream. `depth` counts the steps; `via` are the jobs between.

    `parents` are the ids of the entities of the answer that it is directly connected to, on the
    side of the root.
    """

    entity_id: str
    id: str
    name: str
    kind: str
    depth: int
    flow_type: str
    transformation: str
    schedule: str | None
    via: list[str]
    status: str
    confidence: str
    parents: list[str] = msgspec.field(default_factory=list)


class EntityLineage(MappingStruct, kw_only=True):
    """The entities upstream and downstream of an entity, and whether they are complete."""

    entity_id: str
    id: str
    name: str
    kind: str
    direction: str
    upstream: list[Related]
    downstream: list[Related]
    omitted_count: int
    complete: bool
    blind_spots: list[BlindSpot]


class EntitySummary(MappingStruct, kw_only=True):
    """An entity as a list shows it."""

    entity_id: str
    id: str
    name: str
    kind: str
    type: str
    namespace: str


class EntityPage(MappingStruct, kw_only=True):
    """A page of entities; `cursor` is the start of the next page.

    Unless `total_is_exact`, there are more than `total`.
    """

    entities: list[EntitySummary]
    total: int
    cursor: str | None
    complete: bool
    total_is_exact: bool = True


class PopularDataset(MappingStruct, kw_only=True):
    """A dataset and how many jobs read it."""

    id: str
    label: str
    type: str
    readers: int


class Popular(MappingStruct, kw_only=True):
    """The datasets that the most jobs read, the most read first."""

    datasets: list[PopularDataset]


class ColumnInfo(MappingStruct, kw_only=True):
    """A column of a schema."""

    name: str
    type: str
    description: str
    tags: list[str] = msgspec.field(default_factory=list)


class LastRun(MappingStruct, kw_only=True):
    """The last known state of a run."""

    job: str
    run_id: str
    state: str
    started_at: str | None
    ended_at: str | None
    error: str


class EntityDetails(MappingStruct, kw_only=True):
    """An entity with all its details, and its direct neighbours.

    `last_updated` is the end of the last completed run that writes the dataset. `sent` are the
    labels in events, if a person set others.
    """

    entity_id: str
    id: str
    name: str
    kind: str
    type: str
    namespace: str
    description: str
    columns: list[ColumnInfo]
    owners: list[str]
    tags: list[str]
    aliases: list[str]
    upstream: list[Related]
    downstream: list[Related]
    flows: list[Flow]
    runs: list[LastRun]
    first_seen: str
    last_seen: str
    last_updated: str | None = None
    sent: EntityLabels | None = None
    complete: bool
    blind_spots: list[BlindSpot]


class ColumnDerivation(MappingStruct, kw_only=True):
    """How a job computes a column: its source columns, and the columns that select rows."""

    output_column: str
    input_columns: list[str]
    indirect_columns: list[str]
    transformation: str
    job: str | None
    status: str
    confidence: str


class ColumnDerivations(list[ColumnDerivation]):
    """How a column is computed, one entry for each job that writes it, and how complete that is."""

    def __init__(
        self,
        derivations: Iterable[ColumnDerivation],
        *,
        complete: bool,
        blind_spots: list[BlindSpot],
    ) -> None:
        super().__init__(derivations)
        self.complete = complete
        self.blind_spots = blind_spots


class ColumnLineageAnswer(MappingStruct, kw_only=True):
    """How a column is computed, as JSON."""

    derivations: list[ColumnDerivation]
    complete: bool
    blind_spots: list[BlindSpot]


class UpstreamAnswer(MappingStruct, kw_only=True):
    """The entities upstream of an entity, nearest first."""

    entity_id: str
    upstream_sources: list[Related]
    count: int
    omitted_count: int
    complete: bool
    blind_spots: list[BlindSpot]


class DownstreamAnswer(MappingStruct, kw_only=True):
    """The entities downstream of an entity, nearest first."""

    entity_id: str
    downstream_consumers: list[Related]
    count: int
    omitted_count: int
    complete: bool
    blind_spots: list[BlindSpot]


class LineageAnswer(MappingStruct, kw_only=True):
    """The entities upstream and downstream of an entity."""

    entity_id: str
    lineage: EntityLineage
    upstream_count: int
    downstream_count: int
    omitted_count: int
    complete: bool
    blind_spots: list[BlindSpot]


class PathsAnswer(MappingStruct, kw_only=True):
    """The paths from one entity to another, shortest first, as entity ids."""

    source_id: str
    target_id: str
    paths: list[list[str]]
    path_count: int
    complete: bool
    blind_spots: list[BlindSpot]


class ExportAnswer(MappingStruct, kw_only=True):
    """A part of the graph in another format."""

    entity_id: str
    format: str
    diagram: str
    node_count: int
    edge_count: int
    complete: bool
    blind_spots: list[BlindSpot]
