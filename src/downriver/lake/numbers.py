"""Names as numbers: 64 bits of a hash, so that a graph is arrays that a driver can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as f

from downriver.errors import LakeError
from downriver.lake import tables
from downriver.lake.flow import STAR, Links
from downriver.lake.folding import DATASET, JOB
from downriver.model.facts import EdgeKind
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from downriver.lake.condense import Ints

NUMBERS = tables.Table("numbers", (("node", "BIGINT"), ("kind", "INT")))
LINKS = tables.Table("links", tuple((name, "BIGINT") for name in Links._fields))
FIELDS = tables.Table("fields", (("dataset", "BIGINT"), ("field", "BIGINT")))
COLUMN_LINKS = tables.Table(
    "column_links",
    (
        ("source", "BIGINT"),
        ("source_field", "BIGINT"),
        ("target", "BIGINT"),
        ("target_field", "BIGINT"),
        ("copies", "BOOLEAN"),
        ("carries", "BOOLEAN"),  # the value itself, unmasked
    ),
)


def node_numbers(nodes: DataFrame) -> DataFrame:
    """Return a number for every node: 64 bits of a hash of its name."""
    return NUMBERS.select(nodes.withColumn("node", _number("kind", "namespace", "name")))


def node_links(edges: DataFrame) -> DataFrame:
    """Return the edges that decide how data flows, by the numbers of their ends."""
    from_job = f.col("kind").isin(int(EdgeKind.WRITES), int(EdgeKind.EXPLICIT))
    to_job = f.col("kind") == int(EdgeKind.READS)
    ends = {
        "source": f.xxhash64(_kind(from_job), "source_namespace", "source_name"),
        "target": f.xxhash64(_kind(to_job), "target_namespace", "target_name"),
    }
    wanted = [int(kind) for kind in EdgeKind if kind <= EdgeKind.RENAMED]
    return LINKS.select(edges.where(f.col("kind").isin(*wanted)).withColumns(ends))


def column_links(derivations: DataFrame) -> DataFrame:
    """Return the derivations by the numbers of their ends."""
    whole = (f.col("source_field") == EVERY_FIELD) & (f.col("target_field") == EVERY_FIELD)
    ends = {
        "source": f.xxhash64(f.lit(DATASET), "source_namespace", "source_name"),
        "target": f.xxhash64(f.lit(DATASET), "target_namespace", "target_name"),
        "copies": whole & f.col("direct") & (f.col("subtype") == "IDENTITY"),
        "carries": f.col("direct") & ~f.col("masking"),
        "source_field": _field("source_field"),
        "target_field": _field("target_field"),
    }
    return COLUMN_LINKS.select(derivations.withColumns(ends)).distinct()


def field_numbers(columns: DataFrame) -> DataFrame:
    """Return the columns of datasets by number."""
    of_datasets = columns.where(f.col("kind") == DATASET)
    return FIELDS.select(
        of_datasets.withColumns(
            {"dataset": _number("kind", "namespace", "name"), "field": _field("field")}
        )
    )


def named_reach(counts: DataFrame, nodes: DataFrame) -> DataFrame:
    """Return counts of datasets with their names in place of numbers."""
    return tables.REACH.select(named_nodes(counts, nodes))


def named_nodes(counts: DataFrame, nodes: DataFrame) -> DataFrame:
    """Return what is known of datasets by number, with their names."""
    named = nodes.where(f.col("kind") == DATASET)
    named = named.withColumn("node", _number("kind", "namespace", "name"))
    return named.join(counts, "node")


def named_column_reach(counts: DataFrame, columns: DataFrame) -> DataFrame:
    """Return counts of columns with their names in place of numbers."""
    return tables.COLUMN_REACH.select(named_columns(counts, columns))


def named_columns(counts: DataFrame, columns: DataFrame) -> DataFrame:
    """Return what is known of columns by number, with their names."""
    named = columns.where((f.col("kind") == DATASET) & (f.col("field") != EVERY_FIELD))
    numbered = named.withColumns(
        {"number": _number("kind", "namespace", "name"), "field_number": _field("field")}
    )
    renamed = counts.withColumnsRenamed({"dataset": "number", "field": "field_number"})
    return numbered.join(renamed, ["number", "field_number"])


def _number(*columns: str) -> Column:
    return f.xxhash64(*columns)


def _kind(is_job: Column) -> Column:
    return f.when(is_job, f.lit(JOB)).otherwise(f.lit(DATASET))


def _field(column: str) -> Column:
    return f.when(f.col(column) == EVERY_FIELD, f.lit(STAR)).otherwise(f.xxhash64(column))


def check_distinct(numbers: Ints) -> None:
    """Refuse to count two nodes as one: at ten million nodes, a chance of one in 400,000."""
    if len(np.unique(numbers)) < len(numbers):
        raise LakeError("two nodes have the same 64-bit hash, so reach cannot be counted exactly")
