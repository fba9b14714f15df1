"""The tables of the lake: their schemas, the keys by which facts merge, their transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

Columns: TypeAlias = tuple[tuple[str, str], ...]  # names, and types of Spark SQL


class LakeTable(NamedTuple):
    """A table. `key` identifies a row of a table of facts.

    `entity` are SQL expressions that identify the entity of a row. A build writes all rows of the
    entities that new events mention, and these replace the rows of earlier builds.
    """

    name: str
    columns: Columns
    key: tuple[str, ...] = ()
    entity: tuple[str, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """The columns in order."""
        return [name for name, _ in self.columns]

    @property
    def ddl(self) -> str:
        """The columns as a Spark SQL declaration."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self.columns)

    @property
    def struct(self) -> str:
        """The type of a row as one value."""
        return f"STRUCT<{', '.join(f'`{name}`: {kind}' for name, kind in self.columns)}>"

    def select(self, frame: DataFrame) -> DataFrame:
        """Return a frame with exactly the columns of this table, cast to its types."""
        from pyspark.sql import functions as f

        return frame.select(*(f.col(name).cast(kind).alias(name) for name, kind in self.columns))


def columns(ddl: str) -> Columns:
    """Parse columns of simple types: `name STRING, rows BIGINT`."""
    return tuple((name, kind) for name, kind in (part.split() for part in ddl.split(",")))


def numbers(names: str) -> Columns:
    """Return BIGINT columns by their names."""
    return tuple((name, "BIGINT") for name in names.split())


SPAN_COLUMNS = columns(
    "first_at BIGINT, first_event BINARY, last_at BIGINT, last_event BINARY, observed BOOLEAN"
)
_SEEN = columns("first_seen TIMESTAMP, last_seen TIMESTAMP, observed BOOLEAN")
_JOB = columns("job_namespace STRING, job_name STRING")
_NAME = columns("namespace STRING, name STRING")
_SOURCE = columns("source_namespace STRING, source_name STRING")
_TARGET = columns("target_namespace STRING, target_name STRING")
_COLUMN_PAIR = (
    *_SOURCE,
    ("source_field", "STRING"),
    *_TARGET,
    ("target_field", "STRING"),
)
_DERIVATION_TYPE = columns(
    "direct BOOLEAN, subtype STRING, description STRING, masking BOOLEAN, confidence STRING"
)

_NAMED = ("namespace", "name")
_JOB_NAMED = ("job_namespace", "job_name")
_RUN_NAMED = (*_JOB_NAMED, "run")
_CHECKED = (*_NAMED, *_RUN_NAMED)
_TARGET_NAMED = ("target_namespace", "target_name")
# An edge belongs to its job; without a job, to its source.
_OWNER = ("coalesce(job_namespace, source_namespace)", "coalesce(job_name, source_name)")

# Bronze: events and unreadable records, as they were sent.

# `offset` is the byte at which the line or document begins, `position` the index of the record
# in it, `digest` the SHA-256 of the body. An unreadable record has a `reason` and no time `at`.
EVENT_RECORDS = LakeTable(
    "found",
    columns(
        "source STRING, offset BIGINT, position INT, digest BINARY, at BIGINT, reason STRING, "
        "body BINARY"
    ),
)
EVENTS = LakeTable("events", tuple(c for c in EVENT_RECORDS.columns if c[0] != "reason"))
QUARANTINE = LakeTable("quarantine", tuple(c for c in EVENT_RECORDS.columns if c[0] != "at"))

# Facts: one row for each key, merged over all events.

NODES = LakeTable(
    "nodes",
    (("kind", "INT"), *_NAME, *SPAN_COLUMNS),
    ("kind", "namespace", "name"),
)
_EDGE_KEY = (
    ("kind", "INT"),
    *_SOURCE,
    *_TARGET,
    *columns("via_namespace STRING, via_name STRING"),
)
EDGES = LakeTable("edges", (*_EDGE_KEY, *SPAN_COLUMNS), tuple(name for name, _ in _EDGE_KEY))
RUNS = LakeTable(
    "runs",
    (
        *_JOB,
        *columns("run STRING, state INT, state_at BIGINT, started_at BIGINT"),
        *SPAN_COLUMNS,
    ),
    ("job_namespace", "job_name", "run"),
)
_FACET_KEY = (
    *columns("role INT, kind INT"),
    *_NAME,
    *_JOB,
    *columns("run STRING, facet STRING, digest BINARY"),
)
FACETS = LakeTable("facets", (*_FACET_KEY, *SPAN_COLUMNS), tuple(name for name, _ in _FACET_KEY))
_CLAIM_KEY = (*_JOB, *_NAME, *columns("facet STRING, digest BINARY"))
CLAIMS = LakeTable("claims", (*_CLAIM_KEY, *SPAN_COLUMNS), tuple(name for name, _ in _CLAIM_KEY))
COLUMNS = LakeTable(
    "columns",
    (("kind", "INT"), *_NAME, ("field", "STRING")),
    ("kind", "namespace", "name", "field"),
)
DERIVATIONS = LakeTable(
    "derivations",
    (*_JOB, *columns("facet STRING, digest BINARY"), *_COLUMN_PAIR, *_DERIVATION_TYPE),
)
BODIES = LakeTable("bodies", columns("digest BINARY, body BINARY"), ("digest",))

FACTS = (NODES, EDGES, RUNS, FACETS, CLAIMS, COLUMNS, DERIVATIONS, BODIES)
# The columns of folded facts, one for each table. A row fills one of them.
FACT_KINDS = ("node", "edge", "run", "facet", "claim", "column", "derivation", "body")
KIND_OF = {table.name: kind for kind, table in zip(FACT_KINDS, FACTS, strict=True)}

# Silver: the facts with typed columns and readable values.

_DOCUMENTATION = columns("description STRING, owners ARRAY<STRING>")
DATASETS = LakeTable(
    "datasets", (*_NAME, *_SEEN, *_DOCUMENTATION, ("lifecycle", "STRING")), entity=_NAMED
)
JOBS = LakeTable(
    "jobs",
    (
        *_NAME,
        *_SEEN,
        *_DOCUMENTATION,
        *columns("integration STRING, job_type STRING, sql STRING"),
    ),
    entity=_NAMED,
)
SCHEMA_FIELDS = "ARRAY<STRUCT<path: STRING, type: STRING, description: STRING>>"
SCHEMA_VERSIONS = LakeTable(
    "schema_versions",
    (
        *_NAME,
        *columns("version INT, digest BINARY"),
        *_SEEN,
        ("current", "BOOLEAN"),
        ("fields", SCHEMA_FIELDS),
    ),
    entity=_NAMED,
)
# `current` is false for a column that only an edge or an older schema mentions.
DATASET_COLUMNS = LakeTable(
    "columns",
    (
        *_NAME,
        *columns("field STRING, type STRING, description STRING, ordinal INT, current BOOLEAN"),
    ),
    entity=_NAMED,
)
JOB_RUNS = LakeTable(
    "runs",
    (
        *_JOB,
        *columns(
            "run STRING, state STRING, started_at TIMESTAMP, ended_at TIMESTAMP, seconds DOUBLE"
        ),
        *_SEEN,
        ("error", "STRING"),
    ),
    entity=_RUN_NAMED,
)
READS = LakeTable("reads", (*_JOB, *_NAME, *_SEEN), entity=_JOB_NAMED)
WRITES = LakeTable("writes", (*_JOB, *_NAME, *_SEEN), entity=_JOB_NAMED)
DERIVES = LakeTable(
    "derives", (*_COLUMN_PAIR, *_JOB, *_DERIVATION_TYPE, *_SEEN), entity=_TARGET_NAMED
)
QUALITY = LakeTable(
    "quality",
    (
        *_NAME,
        *_JOB,
        *columns("run STRING, assertion STRING, column STRING, success BOOLEAN, seen_at TIMESTAMP"),
    ),
    entity=_CHECKED,
)
STATISTICS = LakeTable(
    "statistics",
    (
        *_NAME,
        *_JOB,
        *columns("run STRING, role STRING, rows BIGINT, bytes BIGINT, files BIGINT"),
        ("seen_at", "TIMESTAMP"),
    ),
    entity=_CHECKED,
)
TAGS = LakeTable(
    "tags",
    (
        ("kind", "STRING"),
        *_NAME,
        *columns("field STRING, key STRING, value STRING, source STRING"),
        *_SEEN,
    ),
    entity=_NAMED,
)

# Gold: the current graph.

GRAPH_NODES = LakeTable("nodes", (("kind", "STRING"), *_NAME, *_SEEN), entity=_NAMED)
# `status` is active or stale, as in the server's answers.
GRAPH_EDGES = LakeTable(
    "edges",
    (
        *columns("kind STRING, source_kind STRING"),
        *_SOURCE,
        ("target_kind", "STRING"),
        *_TARGET,
        *_JOB,
        ("status", "STRING"),
        *_SEEN,
    ),
    entity=_OWNER,
)
# `direct`: at least one of the kinds carries the value. `masking`: all known derivations mask it.
COLUMN_EDGES = LakeTable(
    "column_edges",
    (
        *_COLUMN_PAIR,
        *columns("kinds ARRAY<STRING>, direct BOOLEAN, masking BOOLEAN, jobs INT"),
        *_SEEN,
    ),
    entity=_TARGET_NAMED,
)

# Gold: the number of upstream and downstream entities. Depth is the length of the longest path,
# in jobs for datasets and in edges for columns; a cycle has length 0.
REACH = LakeTable(
    "reach",
    (
        *_NAME,
        *numbers("downstream_datasets downstream_jobs downstream_depth"),
        *numbers("upstream_datasets upstream_jobs upstream_depth"),
    ),
)
COLUMN_REACH = LakeTable(
    "column_reach",
    (
        *_NAME,
        ("field", "STRING"),
        *numbers("downstream_columns downstream_depth upstream_columns upstream_depth"),
    ),
)

# Gold: the health of datasets and jobs, measured from the last event in the lake.
# `unknown_downstreams` are readers with no known output.
DATASET_HEALTH = LakeTable(
    "dataset_health",
    (
        *_NAME,
        *numbers("readers writers unknown_downstreams"),
        *columns("orphan BOOLEAN, dead BOOLEAN, has_schema BOOLEAN, has_owner BOOLEAN"),
        *columns("has_column_lineage BOOLEAN, last_seen TIMESTAMP"),
    ),
)
COVERAGE = LakeTable(
    "coverage",
    numbers(
        "datasets with_schema with_owner written written_with_column_lineage orphans dead "
        "jobs jobs_with_inputs jobs_with_outputs"
    ),
)
FRESHNESS = LakeTable(
    "freshness",
    (
        *_NAME,
        *columns("last_written TIMESTAMP, writes BIGINT"),
        *columns("usual_seconds DOUBLE, late_seconds DOUBLE"),
    ),
)
FAILURE_RATES = LakeTable(
    "failure_rates",
    (
        *_JOB,
        *numbers("runs ended failed"),
        *columns("failure_rate DOUBLE, usual_seconds DOUBLE"),
        *columns("last_seen TIMESTAMP, last_error STRING"),
    ),
    entity=_JOB_NAMED,
)
SCHEMA_DRIFT = LakeTable(
    "schema_drift",
    (
        *_NAME,
        *columns("version INT, seen_at TIMESTAMP"),
        *columns("added ARRAY<STRING>, removed ARRAY<STRING>, retyped ARRAY<STRING>"),
    ),
    entity=_NAMED,
)

# Gold: governance.
# `upstream_failing` are datasets of which a check failed at its last run. A path is `intact` when
# no upstream dataset is uncertified or failing. `uncertified_inputs` are one job away.
CERTIFIED_PATHS = LakeTable(
    "certified_paths",
    (
        *_NAME,
        *numbers("upstream_datasets upstream_uncertified upstream_failing"),
        *columns("intact BOOLEAN, uncertified_inputs ARRAY<STRING>"),
    ),
)
# `pii_columns` are tagged columns whose unmasked values arrive here. `pii_influences` also counts
# masked values, filters and joins.
PII_REACH = LakeTable(
    "pii_reach",
    (
        *_NAME,
        *columns("field STRING, tagged BOOLEAN, pii_columns BIGINT, pii_influences BIGINT"),
    ),
)
# `tagged`: the dataset or one of its columns has the tag.
PII_DATASETS = LakeTable("pii_datasets", (*_NAME, *columns("tagged BOOLEAN, upstream_pii BIGINT")))

# Gold: one row for each day, with the totals at its end.
DAILY_KPIS = LakeTable(
    "daily_kpis",
    (
        ("day", "DATE"),
        *numbers("datasets jobs edges column_edges with_schema with_column_lineage"),
        *numbers("new_datasets new_edges schema_changes runs failed_runs failed_checks"),
        ("failure_rate", "DOUBLE"),
    ),
)

# The difference between two versions. Computed on request, not stored.
EDGE_CHANGES = LakeTable(
    "edge_changes",
    (*columns("change STRING, kind STRING"), *_SOURCE, *_TARGET, *_JOB),
)
COLUMN_EDGE_CHANGES = LakeTable("column_edge_changes", (("change", "STRING"), *_COLUMN_PAIR))

# State: what a build needs of earlier builds, to compute only what new events change.
DERIVE_ENDS = LakeTable("derive_ends", (*_NAME, ("end", "STRING")), entity=(*_NAMED, "end"))
WRITE_RHYTHM = LakeTable(
    "write_rhythm",
    (*_NAME, *columns("last_written TIMESTAMP, writes BIGINT, usual_seconds DOUBLE")),
    entity=_NAMED,
)
DAILY_COUNTS = LakeTable("daily_counts", columns("day DATE, figure STRING, n BIGINT"))

LAYERS = {
    "bronze": (EVENTS, QUARANTINE),
    "facts": FACTS,
    "silver": (
        DATASETS,
        JOBS,
        SCHEMA_VERSIONS,
        DATASET_COLUMNS,
        JOB_RUNS,
        READS,
        WRITES,
        DERIVES,
        QUALITY,
        STATISTICS,
        TAGS,
    ),
    "gold": (
        GRAPH_NODES,
        GRAPH_EDGES,
        COLUMN_EDGES,
        REACH,
        COLUMN_REACH,
        DATASET_HEALTH,
        COVERAGE,
        FRESHNESS,
        FAILURE_RATES,
        SCHEMA_DRIFT,
        CERTIFIED_PATHS,
        PII_REACH,
        PII_DATASETS,
        DAILY_KPIS,
    ),
    "state": (DERIVE_ENDS, WRITE_RHYTHM, DAILY_COUNTS),
}
BY_NAME = {f"{layer}.{table.name}": table for layer, held in LAYERS.items() for table in held}
FULL_NAMES = {table: name for name, table in BY_NAME.items()}
BUILT = tuple(name for name in BY_NAME if not name.startswith("bronze."))


class TableTransform(NamedTuple):
    """A table, its pure transform, and the tables that the transform reads, as `layer.table`.

    If `facets` are given, the rows come from facets of these names only.
    """

    table: LakeTable
    inputs: tuple[str, ...]
    run: Callable[..., DataFrame]
    facets: tuple[str, ...] = ()
