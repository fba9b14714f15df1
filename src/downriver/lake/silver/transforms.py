"""Silver: datasets, jobs, runs, schemas, columns, edges, checks, statistics and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.schemas import SCHEMA_FIELDS, TableTransform
from downriver.lake.silver.facts import DATASET, JOB
from downriver.model.facts import EdgeKind, FacetRole, RunState
from downriver.model.ids import EVERY_FIELD
from downriver.openlineage.facets.dataset import schema_columns
from downriver.openlineage.facets.description import DOCUMENTATION, OWNERSHIP, TAGS
from downriver.openlineage.facets.label_statement import STATED_PREFIX, TAG_PREFIX, merge_statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from downriver.openlineage.facets.dataset import SchemaColumn


def read_schemas(bodies: DataFrame) -> DataFrame:
    """Return the columns of schema facets by digest.

    In Python, because fields may be nested to any depth.
    """
    return bodies.select("digest", "body").mapInArrow(
        parse_schema_batches, f"digest BINARY, fields {SCHEMA_FIELDS}"
    )


def parse_schema_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parse schema facets on a worker. Of several columns with the same path the first counts."""
    import pyarrow as pa

    field = pa.struct([(name, pa.string()) for name in ("path", "type", "description")])
    for batch in batches:
        read = [
            [
                {"path": column.path, "type": column.type, "description": column.description}
                for column in _distinct_columns(body.as_py())
            ]
            for body in batch.column("body")
        ]
        yield pa.RecordBatch.from_arrays(
            [batch.column("digest").cast(pa.binary()), pa.array(read, pa.list_(field))],
            names=["digest", "fields"],
        )


def _distinct_columns(body: bytes) -> Iterable[SchemaColumn]:
    columns: dict[str, SchemaColumn] = {}
    for column in schema_columns(body):
        columns.setdefault(column.path, column)
    return columns.values()


_OF_NODE = ("kind", "namespace", "name")
LABELS = (OWNERSHIP, DOCUMENTATION, TAGS)
_LATEST = ("last_at", "last_event", "digest")
_QUALITY_FACET = "dataQualityAssertions"
_STATISTICS_FACETS = ("outputStatistics", "inputStatistics")
_OWNERS = "STRUCT<owners: ARRAY<STRUCT<name: STRING>>>"
_ASSERTIONS = (
    "STRUCT<assertions: ARRAY<STRUCT<assertion: STRING, `column`: STRING, success: BOOLEAN>>>"
)
TAGS_TYPE = (
    "STRUCT<tags: ARRAY<STRUCT<`key`: STRING, value: STRING, source: STRING, `field`: STRING>>>"
)
_STATISTICS = (
    "STRUCT<rowCount: BIGINT, size: BIGINT, fileCount: BIGINT, rowsOutput: BIGINT, bytes: BIGINT>"
)


def with_seen_times(frame: DataFrame) -> DataFrame:
    """Add the timestamps at which facts were first and last seen."""
    return frame.withColumns(
        {"first_seen": timestamp_of("first_at"), "last_seen": timestamp_of("last_at")}
    )


def timestamp_of(micros: str) -> Column:
    """Return a time in microseconds as a timestamp."""
    return f.timestamp_micros(f.col(micros))


def enum_name(number: str, members: type[EdgeKind | FacetRole | RunState]) -> Column:
    """Return the name of an enum member that is stored as a number."""
    names = [f.lit(part) for member in members for part in (int(member), member.name.lower())]
    return f.create_map(*names)[f.col(number)]


def current_facets(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return the current facets of nodes: for each name the last one, unless it was deleted."""
    of_nodes = facets.where(f.col("role") == int(FacetRole.NODE))
    latest = of_nodes.groupBy(*_OF_NODE, "facet").agg(f.max(f.struct(*_LATEST)).alias("latest"))
    bodied = with_text(latest.withColumn("digest", f.col("latest.digest")), bodies)
    deleted = f.get_json_object("text", "$._deleted")
    return bodied.where(deleted.isNull() | (deleted != "true")).drop("latest")


def current_labels(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return the current facets of nodes. Statements of people replace those of events."""
    current = current_facets(facets, bodies).select(*_OF_NODE, "facet", "text").alias("c")
    is_stated = f.col("facet").startswith(TAG_PREFIX) | f.col("facet").startswith(STATED_PREFIX)
    stated = current.where(is_stated).select(*_OF_NODE).distinct()
    labels = current.where(is_stated | f.col("facet").isin(*LABELS)).join(
        stated, [*_OF_NODE], "left_semi"
    )
    by_node = labels.groupBy(*_OF_NODE).agg(
        f.map_from_entries(f.collect_list(f.struct("facet", "text"))).alias("facets")
    )
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in current.schema)
    merged = by_node.mapInArrow(merge_label_batches, columns)
    others = current.where(~is_stated)
    is_label = others.where(f.col("facet").isin(*LABELS)).join(stated, [*_OF_NODE], "left_anti")
    return merged.unionAll(is_label).unionAll(others.where(~f.col("facet").isin(*LABELS)))


def merge_label_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the labels of nodes with the statements of people, on a worker."""
    import pyarrow as pa

    for batch in batches:
        rows = [
            (row["kind"], row["namespace"], row["name"], facet, body.decode())
            for row in batch.to_pylist()
            for facet, body in merge_statements(
                {facet: text.encode() for facet, text in row["facets"]}
            ).items()
        ]
        names = (*_OF_NODE, "facet", "text")
        types = (batch.schema.field("kind").type, *[pa.string()] * 4)
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, of) for values, of in zip(columns, types, strict=True)],
            names=list(names),
        )


def with_text(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Add the JSON text of facets."""
    return facets.join(bodies.withColumn("text", f.decode("body", "UTF-8")), "digest").drop("body")


def _nodes_with_facets(
    nodes: DataFrame, facets: DataFrame, bodies: DataFrame, kind: int
) -> DataFrame:
    """Return nodes of a kind, each with a map of its current facets as JSON text."""
    current = current_labels(facets.where(f.col("kind") == kind), bodies)
    texts = current.groupBy(*_OF_NODE).agg(
        f.map_from_entries(f.collect_list(f.struct("facet", "text"))).alias("facets")
    )
    return with_seen_times(nodes.where(f.col("kind") == kind).join(texts, [*_OF_NODE], "left"))


def _text(facet: str, path: str) -> Column:
    return f.get_json_object(f.col("facets")[facet], path)


def _owners() -> Column:
    return f.from_json(f.col("facets")["ownership"], _OWNERS)["owners"]["name"]


def silver_datasets(nodes: DataFrame, facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return one row for each dataset, with values of its current facets."""
    rows = _nodes_with_facets(nodes, facets, bodies, DATASET).withColumns(
        {
            "description": _text("documentation", "$.description"),
            "owners": _owners(),
            "lifecycle": _text("lifecycleStateChange", "$.lifecycleStateChange"),
        }
    )
    return schemas.DATASETS.select(rows)


def silver_jobs(nodes: DataFrame, facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return one row for each job, with values of its current facets."""
    rows = _nodes_with_facets(nodes, facets, bodies, JOB).withColumns(
        {
            "description": _text("documentation", "$.description"),
            "owners": _owners(),
            "integration": _text("jobType", "$.integration"),
            "job_type": _text("jobType", "$.jobType"),
            "sql": _text("sql", "$.query"),
        }
    )
    return schemas.JOBS.select(rows)


def silver_schema_versions(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return all schemas of each dataset, numbered from the oldest."""
    of_node = Window.partitionBy("namespace", "name")
    schema_rows = facets.where(
        (f.col("role") == int(FacetRole.NODE))
        & (f.col("kind") == DATASET)
        & (f.col("facet") == "schema")
    )
    numbered = with_seen_times(schema_rows).withColumns(
        {
            "version": f.row_number().over(of_node.orderBy("first_at", "first_event", "digest")),
            "latest": f.max(f.struct(*_LATEST)).over(of_node),
        }
    )
    current = f.struct(*_LATEST) == f.col("latest")
    read = read_schemas(bodies.join(schema_rows.select("digest").distinct(), "digest", "left_semi"))
    return schemas.SCHEMA_VERSIONS.select(
        numbered.withColumn("current", current).join(read, "digest")
    )


def silver_columns(columns: DataFrame, facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return all known columns, with type and position from the current schema."""
    of_datasets = columns.where((f.col("kind") == DATASET) & (f.col("field") != EVERY_FIELD))
    schema_rows = silver_schema_versions(facets, bodies).where("current")
    entry = schema_rows.select("namespace", "name", f.posexplode("fields").alias("pos", "of"))
    described = entry.select(
        "namespace", "name", f.col("of.path").alias("field"), "of.type", "of.description", "pos"
    ).dropDuplicates(["namespace", "name", "field"])
    rows = of_datasets.join(described, ["namespace", "name", "field"], "left").withColumns(
        {"ordinal": f.col("pos") + 1, "current": f.col("pos").isNotNull()}
    )
    return schemas.DATASET_COLUMNS.select(rows)


def silver_runs(runs: DataFrame, facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return one row for each run: its state, start, end and error."""
    errors = facets.where(
        (f.col("role") == int(FacetRole.RUN)) & (f.col("facet") == "errorMessage")
    ).select("job_namespace", "job_name", "run", "digest", "last_at", "last_event")
    messages = (
        with_text(errors, bodies)
        .groupBy(*schemas.RUNS.key)
        .agg(
            f.max_by(
                f.get_json_object("text", "$.message"), f.struct("last_at", "last_event", "digest")
            ).alias("error")
        )
    )
    ended = f.when(f.col("state") >= int(RunState.COMPLETE), f.col("state_at"))
    rows = with_seen_times(runs.join(messages, [*schemas.RUNS.key], "left")).withColumns(
        {
            "seconds": (ended - f.col("started_at")) / 1_000_000,
            "started_at": timestamp_of("started_at"),
            "ended_at": f.timestamp_micros(ended),
            "state": enum_name("state", RunState),
        }
    )
    return schemas.JOB_RUNS.select(rows)


def silver_reads(edges: DataFrame) -> DataFrame:
    """Return the datasets that each job reads."""
    return schemas.READS.select(_ends(edges, EdgeKind.READS, dataset="source", job="target"))


def silver_writes(edges: DataFrame) -> DataFrame:
    """Return the datasets that each job writes."""
    return schemas.WRITES.select(_ends(edges, EdgeKind.WRITES, dataset="target", job="source"))


def _ends(edges: DataFrame, kind: EdgeKind, *, dataset: str, job: str) -> DataFrame:
    return with_seen_times(edges.where(f.col("kind") == int(kind))).withColumnsRenamed(
        {
            f"{dataset}_namespace": "namespace",
            f"{dataset}_name": "name",
            f"{job}_namespace": "job_namespace",
            f"{job}_name": "job_name",
        }
    )


def silver_derives(derivations: DataFrame, claims: DataFrame) -> DataFrame:
    """Return the derivations of columns, with job, kind and the times of the claims."""
    claimed = claims.withColumnsRenamed({"namespace": "target_namespace", "name": "target_name"})
    on = ["job_namespace", "job_name", "target_namespace", "target_name", "facet", "digest"]
    derivation, claim = derivations.alias("d"), claimed.alias("c")
    same = [f.col(f"d.{name}").eqNullSafe(f.col(f"c.{name}")) for name in on]
    kept = [
        c for c in schemas.DERIVES.column_names if c not in ("first_seen", "last_seen", "observed")
    ]
    joined = derivation.join(claim, same).select(
        *(f.col(f"d.{name}") for name in kept), "c.first_at", "c.last_at", "c.observed"
    )
    merged = joined.groupBy(*kept).agg(
        f.min("first_at").alias("first_at"),
        f.max("last_at").alias("last_at"),
        f.max("observed").alias("observed"),
    )
    return schemas.DERIVES.select(with_seen_times(merged))


def derive_ends(derives: DataFrame) -> DataFrame:
    """Return the datasets that are the source or target of column lineage."""
    ends = [
        derives.select(
            f.col(f"{end}_namespace").alias("namespace"),
            f.col(f"{end}_name").alias("name"),
            f.lit(end).alias("end"),
        )
        for end in ("source", "target")
    ]
    return schemas.DERIVE_ENDS.select(ends[0].unionAll(ends[1]).distinct())


def silver_quality(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return the results of all assertions that runs checked on datasets."""
    checked = _of_facets(facets, bodies, _QUALITY_FACET)
    each = checked.select(
        "*", f.explode(f.from_json("text", _ASSERTIONS)["assertions"]).alias("of")
    ).select("*", "of.*")
    return schemas.QUALITY.select(each)


def silver_statistics(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return the volume that each run read from its inputs and wrote to its outputs."""
    rows = _of_facets(facets, bodies, *_STATISTICS_FACETS)
    counted = rows.withColumn("of", f.from_json("text", _STATISTICS)).withColumns(
        {
            "role": enum_name("role", FacetRole),
            "rows": f.coalesce("of.rowCount", "of.rowsOutput"),
            "bytes": f.coalesce("of.size", "of.bytes"),
            "files": f.col("of.fileCount"),
        }
    )
    return schemas.STATISTICS.select(counted)


def _of_facets(facets: DataFrame, bodies: DataFrame, *names: str) -> DataFrame:
    wanted = facets.where(f.col("facet").isin(*names) & (f.col("kind") == DATASET))
    return with_text(wanted, bodies).withColumn("seen_at", timestamp_of("last_at"))


def silver_tags(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return the tags of datasets, columns, jobs and runs, from all tags facets."""
    tagged = with_text(facets.where(f.col("facet") == "tags"), bodies)
    each = tagged.select("*", f.explode(f.from_json("text", TAGS_TYPE)["tags"]).alias("of"))
    kind = (
        f.when(f.col("role") == int(FacetRole.RUN), "run")
        .when(f.col("kind") == JOB, "job")
        .otherwise(f.when(f.col("of.field").isNull(), "dataset").otherwise("column"))
    )
    named = each.withColumn("kind", kind).select("*", "of.*")
    merged = named.groupBy("kind", "namespace", "name", "field", "key", "value", "source").agg(
        f.min("first_at").alias("first_at"),
        f.max("last_at").alias("last_at"),
        f.max("observed").alias("observed"),
    )
    return schemas.TAGS.select(with_seen_times(merged))


SILVER_TRANSFORMS = (
    TableTransform(
        schemas.DATASETS, ("facts.nodes", "facts.facets", "facts.bodies"), silver_datasets
    ),
    TableTransform(schemas.JOBS, ("facts.nodes", "facts.facets", "facts.bodies"), silver_jobs),
    TableTransform(
        schemas.SCHEMA_VERSIONS,
        ("facts.facets", "facts.bodies"),
        silver_schema_versions,
        ("schema",),
    ),
    TableTransform(
        schemas.DATASET_COLUMNS, ("facts.columns", "facts.facets", "facts.bodies"), silver_columns
    ),
    TableTransform(schemas.JOB_RUNS, ("facts.runs", "facts.facets", "facts.bodies"), silver_runs),
    TableTransform(schemas.READS, ("facts.edges",), silver_reads),
    TableTransform(schemas.WRITES, ("facts.edges",), silver_writes),
    TableTransform(schemas.DERIVES, ("facts.derivations", "facts.claims"), silver_derives),
    TableTransform(
        schemas.QUALITY, ("facts.facets", "facts.bodies"), silver_quality, (_QUALITY_FACET,)
    ),
    TableTransform(
        schemas.STATISTICS,
        ("facts.facets", "facts.bodies"),
        silver_statistics,
        _STATISTICS_FACETS,
    ),
    TableTransform(schemas.TAGS, ("facts.facets", "facts.bodies"), silver_tags, ("tags",)),
)

DERIVE_ENDS_TRANSFORM = TableTransform(schemas.DERIVE_ENDS, ("silver.derives",), derive_ends)
