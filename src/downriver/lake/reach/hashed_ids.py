"""Nodes, columns and edges by 64-bit hashes, so that the graph fits into arrays on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as f

from downriver.errors import LakeError
from downriver.lake import schemas
from downriver.lake.reach.flow_graph import STAR, EdgeArrays
from downriver.lake.silver.facts import DATASET, JOB
from downriver.model.facts import EdgeKind
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from downriver.lake.reach.closure import Ints

NODE_IDS = schemas.LakeTable("numbers", (("node", "BIGINT"), ("kind", "INT")))
EDGE_IDS = schemas.LakeTable("links", tuple((name, "BIGINT") for name in EdgeArrays._fields))
COLUMN_IDS = schemas.LakeTable("fields", (("dataset", "BIGINT"), ("field", "BIGINT")))
COLUMN_EDGE_IDS = schemas.LakeTable(
    "column_links",
    (
        ("source", "BIGINT"),
        ("source_field", "BIGINT"),
        ("target", "BIGINT"),
        ("target_field", "BIGINT"),
        ("copies", "BOOLEAN"),
        ("carries", "BOOLEAN"),  # the value is passed on, unmasked
    ),
)


def node_ids(nodes: DataFrame) -> DataFrame:
    """Return the id of every node: a 64-bit hash of its kind and name."""
    return NODE_IDS.select(nodes.withColumn("node", _hash_id("kind", "namespace", "name")))


def edge_ids(edges: DataFrame) -> DataFrame:
    """Return the edges of the data flow, by the ids of their ends."""
    from_job = f.col("kind").isin(int(EdgeKind.WRITES), int(EdgeKind.EXPLICIT))
    to_job = f.col("kind") == int(EdgeKind.READS)
    ends = {
        "source": f.xxhash64(_node_kind(from_job), "source_namespace", "source_name"),
        "target": f.xxhash64(_node_kind(to_job), "target_namespace", "target_name"),
    }
    job_order = (EdgeKind.PARENT, EdgeKind.PRECEDES)
    wanted = [int(kind) for kind in EdgeKind if kind not in job_order]
    return EDGE_IDS.select(edges.where(f.col("kind").isin(*wanted)).withColumns(ends))


def column_edge_ids(derivations: DataFrame) -> DataFrame:
    """Return the derivations, by the ids of their ends."""
    whole = (f.col("source_field") == EVERY_FIELD) & (f.col("target_field") == EVERY_FIELD)
    ends = {
        "source": f.xxhash64(f.lit(DATASET), "source_namespace", "source_name"),
        "target": f.xxhash64(f.lit(DATASET), "target_namespace", "target_name"),
        "copies": whole & f.col("direct") & (f.col("subtype") == "IDENTITY"),
        "carries": f.col("direct") & ~f.col("masking"),
        "source_field": _field_id("source_field"),
        "target_field": _field_id("target_field"),
    }
    return COLUMN_EDGE_IDS.select(derivations.withColumns(ends)).distinct()


def column_ids(columns: DataFrame) -> DataFrame:
    """Return the ids of the columns of datasets."""
    of_datasets = columns.where(f.col("kind") == DATASET)
    return COLUMN_IDS.select(
        of_datasets.withColumns(
            {"dataset": _hash_id("kind", "namespace", "name"), "field": _field_id("field")}
        )
    )


def reach_table(counts: DataFrame, nodes: DataFrame) -> DataFrame:
    """Return counts of datasets with names in place of ids."""
    return schemas.REACH.select(with_dataset_names(counts, nodes))


def with_dataset_names(counts: DataFrame, nodes: DataFrame) -> DataFrame:
    """Add the names of datasets to a table by id."""
    named = nodes.where(f.col("kind") == DATASET)
    named = named.withColumn("node", _hash_id("kind", "namespace", "name"))
    return named.join(counts, "node")


def column_reach_table(counts: DataFrame, columns: DataFrame) -> DataFrame:
    """Return counts of columns with names in place of ids."""
    return schemas.COLUMN_REACH.select(with_column_names(counts, columns))


def with_column_names(counts: DataFrame, columns: DataFrame) -> DataFrame:
    """Add the names of columns to a table by id."""
    named = columns.where((f.col("kind") == DATASET) & (f.col("field") != EVERY_FIELD))
    numbered = named.withColumns(
        {"number": _hash_id("kind", "namespace", "name"), "field_number": _field_id("field")}
    )
    renamed = counts.withColumnsRenamed({"dataset": "number", "field": "field_number"})
    return numbered.join(renamed, ["number", "field_number"])


def _hash_id(*columns: str) -> Column:
    return f.xxhash64(*columns)


def _node_kind(is_job: Column) -> Column:
    return f.when(is_job, f.lit(JOB)).otherwise(f.lit(DATASET))


def _field_id(column: str) -> Column:
    return f.when(f.col(column) == EVERY_FIELD, f.lit(STAR)).otherwise(f.xxhash64(column))


def check_collisions(numbers: Ints) -> None:
    """Raise an error if two nodes have the same hash.

    With ten million nodes the chance is one in 400,000.
    """
    if len(np.unique(numbers)) < len(numbers):
        raise LakeError("two nodes have the same 64-bit hash, so reach cannot be counted exactly")
