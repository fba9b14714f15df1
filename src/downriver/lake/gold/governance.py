"""Gold: certified datasets with uncertified or failing inputs, and the reach of personal data.

The current tags of a dataset or column decide: `pii`, and the tags that mark certified datasets, as
in the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.reach.counts import (
    count_marked_columns,
    count_marked_upstream,
    dataset_representatives,
)
from downriver.lake.reach.flow_graph import (
    COLUMN_IDS,
    NODE_IDS,
    column_ids,
    column_keys,
    with_column_names,
    with_dataset_names,
)
from downriver.lake.reach.flow_graph import node_ids as numbered
from downriver.lake.silver.facts import DATASET
from downriver.lake.silver.transforms import TAGS_TYPE, current_labels
from downriver.model.governance import CERTIFIED_TAGS, PII_TAG
from downriver.openlineage.facets.description import TAGS
from downriver.openlineage.facets.label_statement import TAG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from downriver.lake.reach.closure import Ints
    from downriver.lake.reach.counts import ReachTables

_NAME = ["namespace", "name"]
_CERTIFIED, _FAILING, _PII = 1, 2, 4  # marks of a dataset, as bits
_MARKS = schemas.LakeTable("marks", (*NODE_IDS.columns, ("marks", "BIGINT")))
_MARKED = schemas.LakeTable("marked", COLUMN_IDS.columns)
_UPSTREAM_COUNTS = schemas.LakeTable(
    "upstream",
    (
        ("node", "BIGINT"),
        ("marks", "BIGINT"),
        *((name, "BIGINT") for name in ("upstream", "uncertified", "failing", "pii")),
    ),
)
_PII_ARRIVALS = schemas.LakeTable(
    "arriving",
    (*COLUMN_IDS.columns, *((name, "BIGINT") for name in ("tagged", "carried", "influenced"))),
)


def governance_tables(reach: ReachTables, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the governance tables by name, from the facts and silver tables of a build."""
    tags = current_tags(tables["facts.facets"], tables["facts.bodies"])
    nodes, columns = tables["facts.nodes"], tables["facts.columns"]
    marked = marked_nodes(nodes, tags, tables["silver.quality"])
    upstream = reach.frame(_UPSTREAM_COUNTS, "of_marks", _marked_upstream(reach, marked))
    datasets = with_dataset_names(upstream, nodes)
    pii_ids = column_ids(pii_columns(columns, tags))
    arriving = reach.frame(_PII_ARRIVALS, "of_pii", _pii_arrivals(reach, pii_ids))
    return {
        "certified_paths": gold_certified_paths(
            datasets, tables["silver.reads"], tables["silver.writes"]
        ),
        "pii_datasets": gold_pii_datasets(datasets),
        "pii_reach": gold_pii_reach(with_column_names(arriving, columns)),
    }


def current_tags(facets: DataFrame, bodies: DataFrame) -> DataFrame:
    """Return the current tags of datasets: namespace, name, column or null, and tag.

    As in the gate, the tag is `key` if its value means yes, no tag if it means no, and otherwise
    `key:value`.
    """
    is_tag = (f.col("facet") == TAGS) | f.col("facet").startswith(TAG_PREFIX)
    labels = current_labels(facets.where(is_tag & (f.col("kind") == DATASET)), bodies)
    current = labels.where(f.col("facet") == TAGS)
    each = current.select(*_NAME, f.explode(f.from_json("text", TAGS_TYPE)["tags"]).alias("of"))
    key, value = f.lower("of.key"), f.lower(f.coalesce("of.value", f.lit("")))
    tag = f.when(value.isin("", "true", "yes", "1"), key).otherwise(
        f.concat(key, f.lit(":"), value)
    )
    column = f.lower("of.field")
    of_all = column.isin("", "*")
    wanted = (key != "") & ~value.isin("false", "no", "0")
    return each.where(wanted).select(
        *_NAME, f.when(~of_all, column).alias("column"), tag.alias("tag")
    )


def marked_nodes(nodes: DataFrame, tags: DataFrame, quality: DataFrame) -> DataFrame:
    """Return the ids of nodes with marks, from tags and checks."""
    certified = tags.where((f.col("tag").isin(*CERTIFIED_TAGS)) & f.col("column").isNull())
    marks = [
        (certified, _CERTIFIED),
        (failing_datasets(quality), _FAILING),
        (tags.where(f.col("tag") == PII_TAG), _PII),
    ]
    given = [of.select(*_NAME, f.lit(mark).alias("mark")).distinct() for of, mark in marks]
    summed = given[0].union(given[1]).union(given[2]).groupBy(*_NAME).agg(f.sum("mark").alias("m"))
    datasets = summed.withColumn("kind", f.lit(DATASET))
    ids = _ids_with_marks(nodes, datasets)
    return _MARKS.select(ids)


def _ids_with_marks(nodes: DataFrame, datasets: DataFrame) -> DataFrame:
    """Return the ids of the nodes that have marks."""
    marked = nodes.join(datasets, ["kind", *_NAME], "left_semi")
    numbers = numbered(marked).select("node", "kind")
    with_names = datasets.withColumn("node", f.xxhash64("kind", *_NAME)).select("node", "m")
    return numbers.join(with_names, "node").withColumn("marks", f.col("m"))


def failing_datasets(quality: DataFrame) -> DataFrame:
    """Return the datasets with a check that failed in its last run."""
    last = quality.groupBy(*_NAME, "assertion", "column").agg(
        # A failure wins at the same time, so that the result depends on no order of rows.
        f.max_by("success", f.struct("seen_at", ~f.col("success"))).alias("success")
    )
    return last.where(~f.col("success")).select(*_NAME).distinct()


def pii_columns(columns: DataFrame, tags: DataFrame) -> DataFrame:
    """Return the columns that have the tag `pii`, or whose dataset has it."""
    personal = tags.where(f.col("tag") == PII_TAG).select(*_NAME, "column").distinct().alias("t")
    of = columns.where(f.col("kind") == DATASET).alias("c")
    same = [f.col(f"c.{part}") == f.col(f"t.{part}") for part in _NAME]
    is_it = f.col("t.column").isNull() | (f.lower("c.field") == f.col("t.column"))
    return of.join(personal, [*same, is_it], "left_semi")


# On the driver


def _marked_upstream(reach: ReachTables, marked: DataFrame) -> dict[str, Ints]:
    """Return the marks of every dataset, and the number of its upstream datasets by mark."""
    given = reach.arrays(_MARKS, marked)
    order = np.argsort(reach.node_table["node"])
    marks = np.zeros(len(order), np.int64)
    at = np.searchsorted(reach.node_table["node"], given["node"], sorter=order)
    marks[order[at]] = given["marks"]
    counted = count_marked_upstream(reach.node_table, reach.edge_table, marks, reach.count)
    upstream = reach.node_counts["upstream_datasets"]

    def having(mark: int) -> Ints:
        """Return the number of upstream datasets with a mark and possibly others."""
        with_it = [counted.get(f"with_{held}") for held in range(8) if held & mark]
        return sum((values for values in with_it if values is not None), np.zeros_like(upstream))

    return {
        "node": counted["node"],
        "marks": marks[order][np.searchsorted(reach.node_table["node"][order], counted["node"])],
        "upstream": upstream,
        "uncertified": upstream - having(_CERTIFIED),
        "failing": having(_FAILING),
        "pii": having(_PII),
    }


def _pii_arrivals(reach: ReachTables, pii_ids: DataFrame) -> dict[str, Ints]:
    """Return for every column the number of tagged columns upstream, by value or in any way."""
    marked = reach.arrays(_MARKED, pii_ids)
    representative = dataset_representatives(reach.node_table, reach.edge_table)
    edges = reach.column_edge_table
    direct = {name: values[edges["carries"]] for name, values in edges.items()}
    carried, influenced = (
        count_marked_columns(reach.column_table, used, representative, marked, reach.count)
        for used in (direct, edges)
    )
    tagged = count_tagged(carried, marked)
    return {
        "dataset": carried["dataset"],
        "field": carried["field"],
        "tagged": tagged,
        "carried": carried["marked"],
        "influenced": influenced["marked"],
    }


def count_tagged(columns: Mapping[str, Ints], marked: Mapping[str, Ints]) -> Ints:
    """Return 1 for each marked column, else 0."""
    among = np.isin(
        column_keys(columns["dataset"], columns["field"]),
        column_keys(marked["dataset"], marked["field"]),
    )
    return among.astype(np.int64)


# Gold


def gold_certified_paths(datasets: DataFrame, reads: DataFrame, writes: DataFrame) -> DataFrame:
    """Return the certified datasets; `intact` if all their inputs are certified and pass."""
    certified = datasets.where(_has(_CERTIFIED))
    plain = datasets.where(~_has(_CERTIFIED)).select(*_NAME)
    job = ["job_namespace", "job_name"]
    inputs = (
        writes.select(*_NAME, *job)
        .join(certified.select(*_NAME), _NAME, "left_semi")
        .join(reads.join(plain, _NAME, "left_semi").select(*job, f.col("name").alias("of")), job)
        .groupBy(*_NAME)
        .agg(f.array_sort(f.collect_set("of")).alias("uncertified_inputs"))
    )
    paths = certified.join(inputs, _NAME, "left").withColumns(
        {
            "upstream_datasets": f.col("upstream"),
            "upstream_uncertified": f.col("uncertified"),
            "upstream_failing": f.col("failing"),
            "intact": (f.col("uncertified") == 0) & (f.col("failing") == 0),
            "uncertified_inputs": f.coalesce("uncertified_inputs", f.array()),
        }
    )
    return schemas.CERTIFIED_PATHS.select(paths)


def gold_pii_datasets(datasets: DataFrame) -> DataFrame:
    """Return the datasets with personal data, or with such a dataset upstream."""
    pii = datasets.withColumns({"tagged": _has(_PII), "upstream_pii": f.col("pii")})
    return schemas.PII_DATASETS.select(pii.where("tagged OR upstream_pii > 0"))


def gold_pii_reach(columns: DataFrame) -> DataFrame:
    """Return the columns with personal data, or with such columns upstream."""
    pii = columns.withColumns(
        {
            "tagged": f.col("tagged") > 0,
            "pii_columns": f.col("carried"),
            "pii_influences": f.col("influenced"),
        }
    )
    return schemas.PII_REACH.select(pii.where("tagged OR influenced > 0"))


def _has(mark: int) -> Column:
    return f.col("marks").bitwiseAND(f.lit(mark)) != 0
