"""Answers about the state of the graph: KPIs, incidents, diagnoses, tags and findings."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Any, Literal

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct
from downriver.model.flows import ColumnDerivation, LastRun
from downriver.model.trust.tag_changes import EntityLabels
from downriver.model.verdicts import ChangeBlastRadius

CERTIFIED_TAGS = ("certified", "canonical", "golden")  # each marks a source of truth
PII_TAG = "pii"


class Severity(str, Enum):
    """The severity of a finding, in increasing order."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return the position in the order."""
        return list(Severity).index(self)


class FindingKind(str, Enum):
    """The kind of a finding."""

    COLUMN_ADDED = "column_added"
    COLUMN_DROPPED = "column_dropped"
    COLUMN_RENAMED = "column_renamed"
    COLUMN_RETYPED = "column_retyped"
    DATASET_DROPPED = "dataset_dropped"
    EDGE_APPEARED = "edge_appeared"
    EDGE_VANISHED = "edge_vanished"
    ROW_COUNT_SHIFT = "row_count_shift"
    NULL_RATE_SHIFT = "null_rate_shift"
    DISTRIBUTION_SHIFT = "distribution_shift"
    QUALITY_FAILED = "quality_failed"
    RUN_FAILED = "run_failed"
    RUN_LATE = "run_late"
    CODE_CHANGED = "code_changed"


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """An event that proves a finding: its SHA-256, its time, its job and run."""

    event: str
    at: str
    job: str | None = None
    run: str | None = None


class Affected(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """An entity downstream of a finding; `depth` counts the jobs between."""

    id: str
    kind: str
    depth: int
    owners: list[str] = []
    tags: list[str] = []


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finding, with everything that its owner needs to act.

    `first_seen` is the time of the first event that shows it, `opened_at` the time when the monitor
    found it. A new alert is sent when `state` changes.
    """

    kind: FindingKind
    entity: str
    subject: str = ""  # the part of the entity: a column, the other end of an edge, a metric
    severity: Severity
    message: str
    first_seen: str
    state: str = ""
    expected: str | None = None
    actual: str | None = None
    confidence: float | None = None
    why: list[str] = []
    evidence: list[Evidence] = []
    owners: list[str] = []
    affected_count: int = 0
    affected: list[Affected] = []
    status: Literal["open", "resolved"] = "open"
    revision: int = 1
    opened_at: str | None = None
    changed_at: str | None = None
    resolved_at: str | None = None
    resolution: str | None = None
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            self.id = finding_id(self.kind, self.entity, self.subject)

    @property
    def fingerprint(self) -> tuple[str, str]:
        """Return the values whose change leads to a new alert."""
        return (self.severity.value, self.state)


class Findings(msgspec.Struct, kw_only=True):
    """Recorded findings, the latest first; `total` includes those not shown."""

    findings: list[Finding]
    total: int
    complete: bool


def finding_id(kind: FindingKind, entity: str, subject: str) -> str:
    """Return an id that is the same for the same finding."""
    text = "\n".join((kind.value, entity, subject))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_FRESHNESS = "freshness_"


class SourceFreshness(MappingStruct, kw_only=True):
    """The end of the last completed run that wrote a source; None if unknown."""

    source: str
    dataset: str
    last_updated: str | None
    age_hours: float | None
    written_by: list[str]


class QualityResult(MappingStruct, kw_only=True):
    """The last result of one check of a dataset."""

    dataset: str
    column: str | None
    assertion: str
    success: bool
    checked_at: str


class MetricSuspect(MappingStruct, kw_only=True):
    """A possible cause; `depth` counts the steps from the metric."""

    entity: str
    kind: str
    reason: str
    depth: int


class Diagnosis(MappingStruct, kw_only=True):
    """The upstream sources of a metric and their state.

    There is also a key `freshness_<source>` for each direct source.
    """

    metric: str
    dataset: str
    column: str
    direct_sources: list[str]
    transformations: list[str]
    derivations: list[ColumnDerivation]
    freshness: list[SourceFreshness]
    last_runs: list[LastRun]
    recent_failures: list[LastRun]
    quality: list[QualityResult]
    look_first: list[MetricSuspect]
    complete: bool
    blind_spots: list[BlindSpot]

    def keys(self) -> list[str]:
        """Return the names of the fields, and of the freshness of each direct source."""
        return [*self.__struct_fields__, *(_FRESHNESS + source for source in self.direct_sources)]

    def __getitem__(self, name: str) -> Any:
        if name in self.__struct_fields__:
            return getattr(self, name)
        source = name.removeprefix(_FRESHNESS)
        if source == name or source not in self.direct_sources:
            raise KeyError(name)
        return next((f.last_updated for f in self.freshness if f.source == source), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types, with the freshness of each direct source."""
        fields = super().to_dict()
        return {**fields, **{name: self[name] for name in self.keys() if name not in fields}}


class Share(msgspec.Struct, kw_only=True, frozen=True):
    """`count` of `total`. `percent` is None when `total` is zero."""

    count: int
    total: int
    percent: float | None

    @classmethod
    def of(cls, count: int, total: int) -> Share:
        """Return a share, rounded to a tenth of a percent."""
        return cls(count=count, total=total, percent=_percent(count, total))


def _percent(count: int, total: int) -> float | None:
    return round(100 * count / total, 1) if total else None


class CountWithExamples(msgspec.Struct, kw_only=True, frozen=True):
    """A number of entities, with some of their ids."""

    count: int
    examples: list[str]


class DatasetBlastRadius(msgspec.Struct, kw_only=True, frozen=True):
    """The number of entities downstream of a dataset."""

    dataset: str
    downstream: int
    datasets: int
    jobs: int
    owners: list[str]


class ReachBucket(msgspec.Struct, kw_only=True, frozen=True):
    """The number of datasets with `least` to `most` datasets and jobs downstream."""

    least: int
    most: int
    datasets: int


class BlastRadius(msgspec.Struct, kw_only=True, frozen=True):
    """The blast radius over all datasets, and the datasets with the largest one."""

    median: float
    largest: int
    distribution: list[ReachBucket]  # 0, 1, 2 to 3, 4 to 7 … up to the largest
    top: list[DatasetBlastRadius]


class JobFailures(msgspec.Struct, kw_only=True, frozen=True):
    """The failed runs of one job in the last days."""

    job: str
    failed: int
    ended: int
    percent: float


class InventoryCoverage(msgspec.Struct, kw_only=True, frozen=True):
    """How many of the tables that a source lists have lineage.

    No event names a table of `missing`. `not_listed` are datasets with lineage that the source
    does not list.
    """

    source: str
    coverage: Share
    missing: list[str]
    without_edges: list[str]
    not_listed: list[str]


class PropagatingTag(msgspec.Struct, kw_only=True):
    """A tag that propagates along column lineage: columns that have it, and that it reaches."""

    tag: str
    columns: CountWithExamples
    reached: CountWithExamples


class Kpis(MappingStruct, kw_only=True):
    """KPIs of the graph."""

    at: str
    datasets: int
    jobs: int
    columns: int
    lineage_coverage: Share  # datasets and jobs with an edge
    without_edges: CountWithExamples  # the others
    upstream_coverage: Share  # of the datasets that are written: those with a known source
    without_source: CountWithExamples
    column_coverage: Share  # of the columns of written datasets: those with a known source
    columns_without_source: CountWithExamples
    schema_coverage: Share
    without_schema: CountWithExamples
    owner_coverage: Share
    without_owner: CountWithExamples
    documentation_coverage: Share
    without_description: CountWithExamples
    orphans: CountWithExamples
    unknown_downstreams: CountWithExamples  # datasets read by a job without an output
    jobs_without_inputs: CountWithExamples
    possible_cuts: CountWithExamples  # datasets that may be one with another name
    stale_edges: Share
    blast_radius: BlastRadius
    change_radius: ChangeBlastRadius  # over the verdicts of the gate
    certified: CountWithExamples
    certified_path_integrity: Share  # of the certified: those with a complete upstream
    certified_with_gaps: CountWithExamples
    pii_columns: CountWithExamples
    pii_reach: CountWithExamples  # columns that the tag reaches
    propagating_tags: list[PropagatingTag]  # those that were declared to propagate
    failure_rate: Share  # of the runs that ended in the last `days`
    failing_jobs: CountWithExamples  # whose last run failed
    worst_jobs: list[JobFailures]
    on_time: Share  # of the jobs with a rhythm: those whose next run is not late
    late_jobs: CountWithExamples
    days: int
    inventories: list[InventoryCoverage] = msgspec.field(default_factory=list)


class IncidentSuspect(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An entity upstream that may be the cause of an incident, with a score and reasons."""

    id: str
    kind: str
    distance: int
    score: float
    reasons: list[str]
    since: str
    findings: list[Finding]
    owners: list[str] = []
    last_success: str | None = None


class UpstreamFreshness(msgspec.Struct, kw_only=True, frozen=True):
    """When a dataset upstream was last written by a completed run, and its age in hours."""

    dataset: str
    distance: int
    last_written: str | None
    age_hours: float | None
    late: bool  # a job that writes it is late or has failed


class Incident(MappingStruct, kw_only=True):
    """The failures of an entity, since when, the possible causes and the affected entities.

    The last lists are about the entity and everything upstream: findings of failed and late runs,
    of checks and contracts, and of changes of schema and code since the last success.
    """

    entity: str
    kind: str
    at: str
    status: Literal["failing", "drifting", "healthy"]
    summary: str
    since: str | None
    failures: list[Finding]
    last_success: str | None
    last_written: str | None
    suspects: list[IncidentSuspect]
    looked_at: int
    affected_count: int
    affected: list[Affected]
    owners: list[str]
    owners_to_tell: list[str]
    freshness: list[UpstreamFreshness]
    runs: list[Finding]
    violations: list[Finding]
    changes: list[Finding]
    complete: bool
    blind_spots: list[BlindSpot]


class TaggedColumn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A column with a tag that was set on it, or that reached it along `path`."""

    column: str
    tag: str
    origin: str
    path: list[str]
    owners: list[str] = []


class TagReach(msgspec.Struct, kw_only=True):
    """The columns where a tag was set, that it reaches, and where masking stops it."""

    tag: str
    tagged: list[str]
    datasets: list[str]  # tagged as a whole
    reached: list[TaggedColumn]
    stopped: list[TaggedColumn]
    complete: bool
    blind_spots: list[BlindSpot]


class ColumnTags(msgspec.Struct, kw_only=True):
    """The tags that were set on a column, and the propagating tags that reach it."""

    column: str
    tags: list[str]
    reached: list[TaggedColumn]


class DatasetTags(msgspec.Struct, kw_only=True):
    """The tags, owners and description of a dataset, and the tags of its columns.

    `sent` are the labels in events, if a person set others. `propagates` lists the tags that
    propagate.
    """

    dataset: str
    tags: list[str]
    owners: list[str]
    description: str
    sent: EntityLabels | None = None
    columns: list[ColumnTags]
    propagates: list[str]
    complete: bool
    blind_spots: list[BlindSpot]


class PropagatingTags(msgspec.Struct, kw_only=True):
    """The tags that propagate along column lineage: `pii`, and those declared so."""

    tags: list[str]


class CertifiedPath(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A certified dataset, the number of entities upstream, and the gaps."""

    dataset: str
    intact: bool
    upstream: int
    gaps: list[BlindSpot]
    owners: list[str] = []


class CertifiedPaths(msgspec.Struct, kw_only=True):
    """All certified datasets, those with gaps first."""

    integrity: Share
    datasets: list[CertifiedPath]
