"""The flow graph as arrays: the rules of the server's walks, as explicit edges.

A job passes everything it reads to everything it writes, except to datasets whose sources are
given explicitly. Aliases of a dataset are one vertex. `*` stands for all columns of a dataset.
Nodes, columns and edges are 64-bit hashes, so that the graph fits into arrays on the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as f

from downriver.errors import LakeError
from downriver.lake import schemas
from downriver.lake.reach.closure import Ints, VertexItems, weak_components
from downriver.lake.silver.facts import DATASET, JOB
from downriver.model.facts import EdgeKind
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STAR = 0  # the id of the field `*`
DATASETS, JOBS = 0, 1  # kinds of items

Flags = npt.NDArray[np.bool_]


class FlowGraph(NamedTuple):
    """A directed graph and the items of its vertices. `weight` is the length of an edge."""

    size: int
    source: Ints
    target: Ints
    weight: Ints
    items: VertexItems


class EdgeArrays(NamedTuple):
    """Edges of the facts, with nodes as indices."""

    kind: Ints
    source: Ints
    target: Ints
    last_at: Ints

    def only(self, *kinds: EdgeKind) -> EdgeArrays:
        """Return the edges of some kinds."""
        wanted = np.isin(self.kind, [int(kind) for kind in kinds])
        return EdgeArrays(*(column[wanted] for column in self))


def alias_representatives(size: int, links: EdgeArrays) -> Ints:
    """Return for each node the representative of all its aliases.

    Only aliases in the latest symlinks facet of a dataset are used, and of the statements about
    two names only the latest.
    """
    alias = links.only(EdgeKind.ALIAS)
    latest = np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(latest, alias.source, alias.last_at)
    current = alias.last_at == latest[alias.source]
    renamed = links.only(EdgeKind.RENAMED)
    same = _stated_same(size, links)
    source = np.concatenate([alias.source[current], renamed.source, same.source])
    target = np.concatenate([alias.target[current], renamed.target, same.target])
    return weak_components(size, source, target)


def _stated_same(size: int, links: EdgeArrays) -> EdgeArrays:
    """Return the statements that two names are one dataset, except those withdrawn later."""
    same, different = links.only(EdgeKind.SAME), links.only(EdgeKind.DIFFERENT)
    taken_back = dict(
        zip(
            (different.source * size + different.target).tolist(),
            different.last_at.tolist(),
            strict=True,
        )
    )
    pairs = (same.source * size + same.target).tolist()
    valid = [at > taken_back.get(pair, -1) for pair, at in zip(pairs, same.last_at, strict=True)]
    return EdgeArrays(*(column[np.array(valid, np.bool_)] for column in same))


def node_flow_graphs(size: int, is_job: Flags, links: EdgeArrays) -> tuple[FlowGraph, FlowGraph]:
    """Return the graphs for downstream and upstream walks from datasets."""
    representative = alias_representatives(size, links)
    reads, writes, derives = (
        _with_representatives(links.only(kind), representative)
        for kind in (EdgeKind.READS, EdgeKind.WRITES, EdgeKind.DERIVES)
    )
    explicit = _is_among(
        writes, _with_representatives(links.only(EdgeKind.EXPLICIT), representative), size
    )
    implicit = EdgeArrays(*(column[~explicit] for column in writes))
    kind = np.where(is_job, JOBS, DATASETS).astype(np.int64)
    down = _flow_graph(
        size,
        [(reads.source, reads.target, 1), (implicit.source, implicit.target, 0)],
        derives,
        VertexItems(representative, kind),
    )
    # An upstream walk counts a job that gives the sources of a dataset explicitly, but does not
    # continue to its other inputs: the job gets a second vertex without successors.
    explicit_job = size + np.flatnonzero(explicit)
    up = _flow_graph(
        size + len(writes.kind),
        [
            (reads.target, reads.source, 0),
            (implicit.target, implicit.source, 1),
            (writes.target[explicit], explicit_job, 1),
        ],
        EdgeArrays(derives.kind, derives.target, derives.source, derives.last_at),
        VertexItems(np.concatenate([representative, writes.source]), kind),
    )
    return down, up


def _with_representatives(links: EdgeArrays, representative: Ints) -> EdgeArrays:
    return links._replace(source=representative[links.source], target=representative[links.target])


def _is_among(links: EdgeArrays, others: EdgeArrays, size: int) -> Flags:
    ends = links.source * size + links.target
    flags: Flags = np.isin(ends, others.source * size + others.target)
    return flags


def _flow_graph(
    size: int, through: list[tuple[Ints, Ints, int]], derives: EdgeArrays, items: VertexItems
) -> FlowGraph:
    parts = [*through, (derives.source, derives.target, 1)]
    return FlowGraph(
        size,
        np.concatenate([source for source, _, _ in parts]),
        np.concatenate([target for _, target, _ in parts]),
        np.concatenate([np.full(len(source), w, np.int64) for source, _, w in parts]),
        items,
    )


class ColumnEdgeArrays(NamedTuple):
    """Derivations between columns. `copies`: every field is copied to the field of that name."""

    source: Ints
    source_field: Ints
    target: Ints
    target_field: Ints
    copies: Flags

    def only(self, wanted: Flags) -> ColumnEdgeArrays:
        """Return the edges where `wanted` is true."""
        return ColumnEdgeArrays(
            self.source[wanted],
            self.source_field[wanted],
            self.target[wanted],
            self.target_field[wanted],
            self.copies[wanted],
        )


class ColumnFlowGraph(NamedTuple):
    """The graph of columns, and the dataset and field of each vertex."""

    down: FlowGraph
    dataset: Ints
    field: Ints

    @property
    def up(self) -> FlowGraph:
        """The same graph with reversed edges."""
        return self.down._replace(source=self.down.target, target=self.down.source)


def column_flow_graph(dataset: Ints, field: Ints, links: ColumnEdgeArrays) -> ColumnFlowGraph:
    """Return the graph of columns, with two extra vertices for `*` of each dataset.

    An edge to `*` leads to every column; an edge from `*` comes from every column. `*` itself is
    counted only if no column of the dataset is known.
    """
    dataset, field, links = _with_copies(dataset, field, links)
    keys, size = _numbered_columns(dataset, field)
    datasets = np.unique(np.concatenate([dataset, links.source, links.target]))
    arriving, leaving = size, size + len(datasets)  # first vertices of `*` as target and as source

    def vertex(of: Ints, name: Ints, star: int) -> Ints:
        column = np.searchsorted(keys, column_keys(of, name))
        whole = star + np.searchsorted(datasets, of)
        return np.where(name == STAR, whole, np.minimum(column, size))

    columns = np.arange(size)
    of_column = np.searchsorted(datasets, keys["dataset"])
    empty = np.setdiff1d(np.arange(len(datasets)), of_column)
    # Only where an edge uses `*`: otherwise unrelated columns would be connected.
    star_target = np.isin(keys["dataset"], links.target[links.target_field == STAR])
    star_source = np.isin(keys["dataset"], links.source[links.source_field == STAR])
    parts = [
        (
            vertex(links.source, links.source_field, leaving),
            vertex(links.target, links.target_field, arriving),
            1,
        ),
        (arriving + of_column[star_target], columns[star_target], 0),
        (columns[star_source], leaving + of_column[star_source], 0),
        (arriving + empty, leaving + empty, 0),
    ]
    item = np.full(size + 2 * len(datasets), -1, np.int64)
    item[:size] = columns
    item[arriving + empty] = size + empty
    kinds = np.zeros(size + len(datasets), np.int64)
    no_edges = EdgeArrays(*(np.zeros(0, np.int64) for _ in EdgeArrays._fields))
    flow = _flow_graph(len(item), parts, no_edges, VertexItems(item, kinds))
    return ColumnFlowGraph(flow, keys["dataset"], keys["field"])


_COLUMN_KEY = np.dtype([("dataset", np.int64), ("field", np.int64)])


def column_keys(dataset: Ints, field: Ints) -> npt.NDArray[np.void]:
    """Return columns as values that can be sorted and compared."""
    keys = np.empty(len(dataset), _COLUMN_KEY)
    keys["dataset"], keys["field"] = dataset, field
    return keys


def _numbered_columns(dataset: Ints, field: Ints) -> tuple[npt.NDArray[np.void], int]:
    keys = np.unique(column_keys(dataset[field != STAR], field[field != STAR]))
    return keys, len(keys)


def _with_copies(
    dataset: Ints, field: Ints, links: ColumnEdgeArrays
) -> tuple[Ints, Ints, ColumnEdgeArrays]:
    """Replace `* → *` copies by an edge for each field, also for fields known from other copies."""
    known = np.unique(
        column_keys(
            np.concatenate([dataset, links.source, links.target]),
            np.concatenate([field, links.source_field, links.target_field]),
        )
    )
    known = known[known["field"] != STAR]
    copies, others = links.only(links.copies), links.only(~links.copies)
    copied = _copy_fields(known, copies)
    while len(grown := np.union1d(known, column_keys(copied.target, copied.target_field))) > len(
        known
    ):
        known = grown
        copied = _copy_fields(known, copies)
    # A copy of a dataset without known fields remains an edge of `*`.
    whole = copies.only(~np.isin(copies.source, known["dataset"]))
    return known["dataset"], known["field"], _concatenate(others, copied, whole)


def _concatenate(*links: ColumnEdgeArrays) -> ColumnEdgeArrays:
    return ColumnEdgeArrays(
        np.concatenate([part.source for part in links]),
        np.concatenate([part.source_field for part in links]),
        np.concatenate([part.target for part in links]),
        np.concatenate([part.target_field for part in links]),
        np.concatenate([part.copies for part in links]),
    )


def _copy_fields(known: npt.NDArray[np.void], copies: ColumnEdgeArrays) -> ColumnEdgeArrays:
    starts = np.searchsorted(known["dataset"], copies.source)
    lengths = np.searchsorted(known["dataset"], copies.source, side="right") - starts
    which = np.repeat(np.arange(len(copies.source)), lengths)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    fields = known["field"][starts[which] + offset]
    return ColumnEdgeArrays(
        copies.source[which], fields, copies.target[which], fields, np.zeros(len(which), np.bool_)
    )


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
