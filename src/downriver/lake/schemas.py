"""The schemas of the lake's tables, and the keys by which facts merge.

In bronze and facts, times are microseconds since the epoch and kinds, roles and states are the
numbers of `model.facts`, as in the store. From silver on, times are TIMESTAMP and numbers are
words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Columns: TypeAlias = tuple[tuple[str, str], ...]  # names, and types as Spark SQL calls them

SPAN_COLUMNS: Columns = (
    ("first_at", "BIGINT"),
    ("first_event", "BINARY"),
    ("last_at", "BIGINT"),
    ("last_event", "BINARY"),
    ("observed", "BOOLEAN"),
)
_SEEN: Columns = (
    ("first_seen", "TIMESTAMP"),
    ("last_seen", "TIMESTAMP"),
    ("observed", "BOOLEAN"),
)
_JOB: Columns = (("job_namespace", "STRING"), ("job_name", "STRING"))
_DATASET: Columns = (("namespace", "STRING"), ("name", "STRING"))
_SOURCE: Columns = (("source_namespace", "STRING"), ("source_name", "STRING"))
_TARGET: Columns = (("target_namespace", "STRING"), ("target_name", "STRING"))
_HOW: Columns = (
    ("direct", "BOOLEAN"),
    ("subtype", "STRING"),
    ("description", "STRING"),
    ("masking", "BOOLEAN"),
    ("confidence", "STRING"),
)


class LakeTable(NamedTuple):
    """A table. `key` is what a row of a table of facts is known by."""

    name: str
    columns: Columns
    key: tuple[str, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """The columns in order."""
        return [name for name, _ in self.columns]

    @property
    def ddl(self) -> str:
        """The columns as Spark SQL declares them."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self.columns)

    @property
    def struct(self) -> str:
        """The type of a row as one value."""
        return f"STRUCT<{', '.join(f'`{name}`: {kind}' for name, kind in self.columns)}>"

    def select(self, frame: DataFrame) -> DataFrame:
        """Return a frame with exactly the columns of this table, in its types."""
        from pyspark.sql import functions as f

        return frame.select(*(f.col(name).cast(kind).alias(name) for name, kind in self.columns))


# Bronze: what was found, as it was sent.

EVENT_RECORDS = LakeTable(
    "found",
    (
        ("source", "STRING"),
        ("offset", "BIGINT"),  # the byte at which its line or document begins
        ("position", "INT"),  # its place among the events of that line or document
        ("digest", "BINARY"),  # SHA-256 of the body
        ("at", "BIGINT"),  # the event's own time; null when it cannot be read
        ("reason", "STRING"),  # why it cannot be read, else null
        ("body", "BINARY"),
    ),
)
EVENTS = LakeTable("events", tuple(c for c in EVENT_RECORDS.columns if c[0] != "reason"))
QUARANTINE = LakeTable("quarantine", tuple(c for c in EVENT_RECORDS.columns if c[0] != "at"))

# Facts: one row a key, merged over all events.

NODES = LakeTable(
    "nodes",
    (("kind", "INT"), *_DATASET, *SPAN_COLUMNS),
    ("kind", "namespace", "name"),
)
EDGES = LakeTable(
    "edges",
    (
        ("kind", "INT"),
        *_SOURCE,
        *_TARGET,
        ("via_namespace", "STRING"),
        ("via_name", "STRING"),
        *SPAN_COLUMNS,
    ),
    (
        "kind",
        "source_namespace",
        "source_name",
        "target_namespace",
        "target_name",
        "via_namespace",
        "via_name",
    ),
)
RUNS = LakeTable(
    "runs",
    (
        *_JOB,
        ("run", "STRING"),
        ("state", "INT"),
        ("state_at", "BIGINT"),
        ("started_at", "BIGINT"),
        *SPAN_COLUMNS,
    ),
    ("job_namespace", "job_name", "run"),
)
FACETS = LakeTable(
    "facets",
    (
        ("role", "INT"),
        ("kind", "INT"),
        *_DATASET,
        *_JOB,
        ("run", "STRING"),
        ("facet", "STRING"),
        ("digest", "BINARY"),
        *SPAN_COLUMNS,
    ),
    ("role", "kind", "namespace", "name", "job_namespace", "job_name", "run", "facet", "digest"),
)
CLAIMS = LakeTable(
    "claims",
    (*_JOB, *_DATASET, ("facet", "STRING"), ("digest", "BINARY"), *SPAN_COLUMNS),
    ("job_namespace", "job_name", "namespace", "name", "facet", "digest"),
)
COLUMNS = LakeTable(
    "columns",
    (("kind", "INT"), *_DATASET, ("field", "STRING")),
    ("kind", "namespace", "name", "field"),
)
DERIVATIONS = LakeTable(
    "derivations",
    (
        *_JOB,
        ("facet", "STRING"),
        ("digest", "BINARY"),
        *_SOURCE,
        ("source_field", "STRING"),
        *_TARGET,
        ("target_field", "STRING"),
        *_HOW,
    ),
)
BODIES = LakeTable("bodies", (("digest", "BINARY"), ("body", "BINARY")), ("digest",))

FACTS = (NODES, EDGES, RUNS, FACETS, CLAIMS, COLUMNS, DERIVATIONS, BODIES)

# Silver: the same, typed and named for people.

DATASETS = LakeTable(
    "datasets",
    (
        *_DATASET,
        *_SEEN,
        ("description", "STRING"),
        ("owners", "ARRAY<STRING>"),
        ("lifecycle", "STRING"),
    ),
)
JOBS = LakeTable(
    "jobs",
    (
        *_DATASET,
        *_SEEN,
        ("description", "STRING"),
        ("owners", "ARRAY<STRING>"),
        ("integration", "STRING"),
        ("job_type", "STRING"),
        ("sql", "STRING"),
    ),
)
SCHEMA_FIELDS = "ARRAY<STRUCT<path: STRING, type: STRING, description: STRING>>"
SCHEMA_VERSIONS = LakeTable(
    "schema_versions",
    (
        *_DATASET,
        ("version", "INT"),
        ("digest", "BINARY"),
        *_SEEN,
        ("current", "BOOLEAN"),
        ("fields", SCHEMA_FIELDS),
    ),
)
DATASET_COLUMNS = LakeTable(
    "columns",
    (
        *_DATASET,
        ("field", "STRING"),
        ("type", "STRING"),
        ("description", "STRING"),
        ("ordinal", "INT"),
        ("current", "BOOLEAN"),  # false: only an edge or an older schema tells of it
    ),
)
JOB_RUNS = LakeTable(
    "runs",
    (
        *_JOB,
        ("run", "STRING"),
        ("state", "STRING"),
        ("started_at", "TIMESTAMP"),
        ("ended_at", "TIMESTAMP"),
        ("seconds", "DOUBLE"),
        *_SEEN,
        ("error", "STRING"),
    ),
)
READS = LakeTable("reads", (*_JOB, *_DATASET, *_SEEN))
WRITES = LakeTable("writes", (*_JOB, *_DATASET, *_SEEN))
DERIVES = LakeTable(
    "derives",
    (
        *_SOURCE,
        ("source_field", "STRING"),
        *_TARGET,
        ("target_field", "STRING"),
        *_JOB,
        *_HOW,
        *_SEEN,
    ),
)
QUALITY = LakeTable(
    "quality",
    (
        *_DATASET,
        *_JOB,
        ("run", "STRING"),
        ("assertion", "STRING"),
        ("column", "STRING"),
        ("success", "BOOLEAN"),
        ("seen_at", "TIMESTAMP"),
    ),
)
STATISTICS = LakeTable(
    "statistics",
    (
        *_DATASET,
        *_JOB,
        ("run", "STRING"),
        ("role", "STRING"),
        ("rows", "BIGINT"),
        ("bytes", "BIGINT"),
        ("files", "BIGINT"),
        ("seen_at", "TIMESTAMP"),
    ),
)
TAGS = LakeTable(
    "tags",
    (
        ("kind", "STRING"),
        *_DATASET,
        ("field", "STRING"),
        ("key", "STRING"),
        ("value", "STRING"),
        ("source", "STRING"),
        *_SEEN,
    ),
)

# Gold: the graph as it stands.

GRAPH_NODES = LakeTable("nodes", (("kind", "STRING"), *_DATASET, *_SEEN))
GRAPH_EDGES = LakeTable(
    "edges",
    (
        ("kind", "STRING"),
        ("source_kind", "STRING"),
        *_SOURCE,
        ("target_kind", "STRING"),
        *_TARGET,
        *_JOB,
        ("status", "STRING"),  # active or stale, as the server's answers say
        *_SEEN,
    ),
)
COLUMN_EDGES = LakeTable(
    "column_edges",
    (
        *_SOURCE,
        ("source_field", "STRING"),
        *_TARGET,
        ("target_field", "STRING"),
        ("kinds", "ARRAY<STRING>"),
        ("direct", "BOOLEAN"),  # at least one of the kinds carries the value
        ("masking", "BOOLEAN"),  # every way known masks it
        ("jobs", "INT"),
        *_SEEN,
    ),
)

# How far each dataset and column reaches. Depth is the longest way, a cycle counting as one place:
# in jobs crossed for datasets, in steps for columns.
REACH = LakeTable(
    "reach",
    (
        *_DATASET,
        ("downstream_datasets", "BIGINT"),
        ("downstream_jobs", "BIGINT"),
        ("downstream_depth", "BIGINT"),
        ("upstream_datasets", "BIGINT"),
        ("upstream_jobs", "BIGINT"),
        ("upstream_depth", "BIGINT"),
    ),
)
COLUMN_REACH = LakeTable(
    "column_reach",
    (
        *_DATASET,
        ("field", "STRING"),
        ("downstream_columns", "BIGINT"),
        ("downstream_depth", "BIGINT"),
        ("upstream_columns", "BIGINT"),
        ("upstream_depth", "BIGINT"),
    ),
)

# How datasets and jobs are doing, judged from the last event in the lake.
DATASET_HEALTH = LakeTable(
    "dataset_health",
    (
        *_DATASET,
        ("readers", "BIGINT"),
        ("writers", "BIGINT"),
        ("unknown_downstreams", "BIGINT"),  # readers that write nothing known
        ("orphan", "BOOLEAN"),
        ("dead", "BOOLEAN"),
        ("has_schema", "BOOLEAN"),
        ("has_owner", "BOOLEAN"),
        ("has_column_lineage", "BOOLEAN"),
        ("last_seen", "TIMESTAMP"),
    ),
)
COVERAGE = LakeTable(
    "coverage",
    tuple(
        (name, "BIGINT")
        for name in (
            "datasets",
            "with_schema",
            "with_owner",
            "written",
            "written_with_column_lineage",
            "orphans",
            "dead",
            "jobs",
            "jobs_with_inputs",
            "jobs_with_outputs",
        )
    ),
)
FRESHNESS = LakeTable(
    "freshness",
    (
        *_DATASET,
        ("last_written", "TIMESTAMP"),
        ("writes", "BIGINT"),
        ("usual_seconds", "DOUBLE"),
        ("late_seconds", "DOUBLE"),
    ),
)
FAILURE_RATES = LakeTable(
    "failure_rates",
    (
        *_JOB,
        ("runs", "BIGINT"),
        ("ended", "BIGINT"),
        ("failed", "BIGINT"),
        ("failure_rate", "DOUBLE"),
        ("usual_seconds", "DOUBLE"),
        ("last_seen", "TIMESTAMP"),
        ("last_error", "STRING"),
    ),
)
SCHEMA_DRIFT = LakeTable(
    "schema_drift",
    (
        *_DATASET,
        ("version", "INT"),
        ("seen_at", "TIMESTAMP"),
        ("added", "ARRAY<STRING>"),
        ("removed", "ARRAY<STRING>"),
        ("retyped", "ARRAY<STRING>"),
    ),
)

# Whether what is certified rests on what is certified, and where personal data goes.
CERTIFIED_PATHS = LakeTable(
    "certified_paths",
    (
        *_DATASET,
        ("upstream_datasets", "BIGINT"),
        ("upstream_uncertified", "BIGINT"),
        ("upstream_failing", "BIGINT"),  # datasets whose last checks did not all pass
        ("intact", "BOOLEAN"),  # neither of these
        ("uncertified_inputs", "ARRAY<STRING>"),  # those one job away
    ),
)
PII_REACH = LakeTable(
    "pii_reach",
    (
        *_DATASET,
        ("field", "STRING"),
        ("tagged", "BOOLEAN"),
        ("pii_columns", "BIGINT"),  # tagged columns whose values come here, unmasked
        ("pii_influences", "BIGINT"),  # the same, masked or by a filter or join too
    ),
)
PII_DATASETS = LakeTable(
    "pii_datasets",
    (
        *_DATASET,
        ("tagged", "BOOLEAN"),  # it, or a column of it
        ("upstream_pii", "BIGINT"),
    ),
)

# A row a day, of what was known by its end.
DAILY_KPIS = LakeTable(
    "daily_kpis",
    (
        ("day", "DATE"),
        *(
            (name, "BIGINT")
            for name in (
                "datasets",
                "jobs",
                "edges",
                "column_edges",
                "with_schema",
                "with_column_lineage",
                "new_datasets",
                "new_edges",
                "schema_changes",
                "runs",
                "failed_runs",
                "failed_checks",
            )
        ),
        ("failure_rate", "DOUBLE"),
    ),
)

# What differs between two versions; made when asked for.
EDGE_CHANGES = LakeTable(
    "edge_changes",
    (("change", "STRING"), ("kind", "STRING"), *_SOURCE, *_TARGET, *_JOB),
)
COLUMN_EDGE_CHANGES = LakeTable(
    "column_edge_changes",
    (
        ("change", "STRING"),
        *_SOURCE,
        ("source_field", "STRING"),
        *_TARGET,
        ("target_field", "STRING"),
    ),
)

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
}
BY_NAME = {f"{layer}.{table.name}": table for layer, held in LAYERS.items() for table in held}
