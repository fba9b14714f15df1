"""How far every dataset and column reaches: Spark makes numbers of names and counts the blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f

from downriver.errors import LakeError
from downriver.lake import tables
from downriver.lake.closure import (
    Block,
    Counted,
    Piece,
    count_block,
    count_here,
    count_reached,
    longest_ways,
)
from downriver.lake.flow import (
    DATASETS,
    JOBS,
    STAR,
    ColumnLinks,
    Flow,
    Links,
    column_flow,
    join_names,
    node_flows,
)
from downriver.lake.folding import DATASET, JOB
from downriver.model.facts import EdgeKind
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from downriver.lake.condense import Ints
    from downriver.lake.parquet import Parquet

    Count = Callable[[list[Piece], list[Block]], Iterable[Counted]]

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
    ),
)
_NODE_COUNTS = tables.Table("counts", (("node", "BIGINT"), *tables.REACH.columns[2:]))
_COLUMN_COUNTS = tables.Table("counts", (*FIELDS.columns, *tables.COLUMN_REACH.columns[3:]))
_WORTH_SPREADING = 2_000_000  # edges times blocks; less is quicker here than a job of Spark's


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
    named = nodes.where(f.col("kind") == DATASET)
    named = named.withColumn("node", _number("kind", "namespace", "name"))
    return tables.REACH.select(named.join(counts, "node"))


def named_column_reach(counts: DataFrame, columns: DataFrame) -> DataFrame:
    """Return counts of columns with their names in place of numbers."""
    named = columns.where((f.col("kind") == DATASET) & (f.col("field") != EVERY_FIELD))
    numbered = named.withColumns(
        {"number": _number("kind", "namespace", "name"), "field_number": _field("field")}
    )
    renamed = counts.withColumnsRenamed({"dataset": "number", "field": "field_number"})
    return tables.COLUMN_REACH.select(numbered.join(renamed, ["number", "field_number"]))


def _number(*columns: str) -> Column:
    return f.xxhash64(*columns)


def _kind(is_job: Column) -> Column:
    return f.when(is_job, f.lit(JOB)).otherwise(f.lit(DATASET))


def _field(column: str) -> Column:
    return f.when(f.col(column) == EVERY_FIELD, f.lit(STAR)).otherwise(f.xxhash64(column))


class Reach:
    """Measures how far everything reaches, by way of numbers in a folder of their own."""

    def __init__(self, parquet: Parquet, path: str, count: Count) -> None:
        self._parquet = parquet
        self._path = path
        self._count = count

    def measure(
        self, nodes: DataFrame, edges: DataFrame, columns: DataFrame, derivations: DataFrame
    ) -> dict[str, DataFrame]:
        """Return the tables of reach by name."""
        numbers = self._arrays(NUMBERS, node_numbers(nodes))
        links = self._arrays(LINKS, node_links(edges))
        fields = self._arrays(FIELDS, field_numbers(columns))
        steps = self._arrays(COLUMN_LINKS, column_links(derivations))
        _check_distinct(numbers["node"])
        of_nodes = count_nodes(numbers, links, self._count)
        of_columns = count_columns(fields, steps, speakers(numbers, links), self._count)
        return {
            "reach": named_reach(self._frame(_NODE_COUNTS, "of_nodes", of_nodes), nodes),
            "column_reach": named_column_reach(
                self._frame(_COLUMN_COUNTS, "of_columns", of_columns), columns
            ),
        }

    def _arrays(self, table: tables.Table, frame: DataFrame) -> dict[str, Ints]:
        path = f"{self._path}/{table.name}"
        self._parquet.write(frame, path)
        return self._parquet.read_arrays(table, path)

    def _frame(self, table: tables.Table, name: str, columns: Mapping[str, Ints]) -> DataFrame:
        return self._parquet.write_arrays(table, columns, f"{self._path}/{name}")


def _check_distinct(numbers: Ints) -> None:
    """Refuse to count two nodes as one: at ten million nodes, a chance of one in 400,000."""
    if len(np.unique(numbers)) < len(numbers):
        raise LakeError("two nodes have the same 64-bit hash, so reach cannot be counted exactly")


# On the driver: numbers in, counts out


def count_nodes(
    numbers: Mapping[str, Ints], links: Mapping[str, Ints], count: Count
) -> dict[str, Ints]:
    """Return how far each dataset reaches; every name of one dataset reaches as far."""
    nodes, dense = _dense(numbers["node"], links)
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[np.searchsorted(nodes, numbers["node"])] = numbers["kind"] == JOB
    edges = Links(links["kind"], dense["source"], dense["target"], links["last_at"])
    down, up = node_flows(len(nodes), is_job, edges)
    speaker = join_names(len(nodes), edges)
    found = {"node": nodes}
    for way, flow in (("downstream", down), ("upstream", up)):
        reached = _count(flow, count)
        found[f"{way}_datasets"] = reached[DATASETS][speaker]
        found[f"{way}_jobs"] = reached[JOBS][speaker]
        found[f"{way}_depth"] = _depth(flow)[speaker]
    return {name: values[~is_job] for name, values in found.items()}


def count_columns(
    fields: Mapping[str, Ints], links: Mapping[str, Any], speaker: Mapping[str, Ints], count: Count
) -> dict[str, Ints]:
    """Return how far each column reaches. `speaker` says which name stands for a dataset."""
    source, target, dataset = (
        _spoken(values, speaker) for values in (links["source"], links["target"], fields["dataset"])
    )
    flow = column_flow(
        dataset,
        fields["field"],
        ColumnLinks(source, links["source_field"], target, links["target_field"], links["copies"]),
    )
    found: dict[str, Ints] = {}
    for way, directed in (("downstream", flow.down), ("upstream", flow.up)):
        size = len(flow.dataset)
        found[f"{way}_columns"] = _count(directed, count)[0][:size]
        found[f"{way}_depth"] = _depth(directed)[:size]
    return _for_every_name(fields, dataset, flow.dataset, flow.field, found)


def speakers(numbers: Mapping[str, Ints], links: Mapping[str, Ints]) -> dict[str, Ints]:
    """Return which node stands for all names of each."""
    nodes, dense = _dense(numbers["node"], links)
    edges = Links(links["kind"], dense["source"], dense["target"], links["last_at"])
    return {"node": nodes, "speaker": nodes[join_names(len(nodes), edges)]}


def _spoken(values: Ints, speaker: Mapping[str, Ints]) -> Ints:
    return speaker["speaker"][np.searchsorted(speaker["node"], values)]


def _for_every_name(
    fields: Mapping[str, Ints], spoken: Ints, dataset: Ints, field: Ints, found: dict[str, Ints]
) -> dict[str, Ints]:
    """Give every column, under each name of its dataset, what the one that stands for it has."""
    pair = np.dtype([("dataset", np.int64), ("field", np.int64)])
    keys, wanted = np.empty(len(dataset), pair), np.empty(len(spoken), pair)
    keys["dataset"], keys["field"] = dataset, field
    wanted["dataset"], wanted["field"] = spoken, fields["field"]
    named = wanted["field"] != STAR
    at = np.searchsorted(keys, wanted[named])
    counts = {name: values[at] for name, values in found.items()}
    return {"dataset": fields["dataset"][named], "field": fields["field"][named], **counts}


def _dense(nodes: Ints, links: Mapping[str, Ints]) -> tuple[Ints, dict[str, Ints]]:
    known = np.unique(nodes)
    return known, {end: np.searchsorted(known, links[end]) for end in ("source", "target")}


def _count(flow: Flow, count: Count) -> list[Ints]:
    found = count_reached(flow.size, flow.source, flow.target, flow.items, count)
    nothing = [np.zeros(flow.size, np.int64)]
    return [*found, *nothing * 2][:2]


def _depth(flow: Flow) -> Ints:
    return longest_ways(flow.size, flow.source, flow.target, flow.weight)


# The blocks, on the workers


def counting_on(spark: SparkSession, parquet: Parquet, path: str) -> Count:
    """Return a way to count blocks: here when there is little to do, else as tasks of Spark."""
    made = iter(range(1_000_000))

    def count(pieces: list[Piece], blocks: list[Block]) -> Iterable[Counted]:
        if sum(len(pieces[block.piece].source) for block in blocks) < _WORTH_SPREADING:
            return count_here(pieces, blocks)
        return _count_spread(spark, parquet, f"{path}/blocks-{next(made)}", pieces, blocks)

    return count


_COUNTED = tables.Table("counted", (("kind", "INT"), ("vertex", "BIGINT"), ("reached", "BIGINT")))


def _count_spread(
    spark: SparkSession, parquet: Parquet, path: str, pieces: list[Piece], blocks: list[Block]
) -> Iterator[Counted]:
    shared = spark.sparkContext.broadcast(pieces)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for row in batch.to_pylist():
                block = Block(**row)
                kind, vertices, reached = count_block(shared.value[block.piece], block)
                some = np.flatnonzero(reached)
                kinds = pa.array(np.full(len(some), kind, np.int32))
                yield pa.RecordBatch.from_arrays(
                    [kinds, pa.array(vertices[some]), pa.array(reached[some])],
                    names=["kind", "vertex", "reached"],
                )

    rows = spark.createDataFrame([tuple(b) for b in blocks], "piece INT, kind INT, start BIGINT")
    counted = rows.repartition(len(blocks)).mapInArrow(count, _COUNTED.ddl)
    summed = counted.groupBy("kind", "vertex").agg(f.sum("reached").alias("reached"))
    parquet.write(_COUNTED.select(summed), path)
    shared.unpersist()
    found = parquet.read_arrays(_COUNTED, path)
    for kind in np.unique(found["kind"]).tolist():
        mine = found["kind"] == kind
        yield kind, found["vertex"][mine], found["reached"][mine]
