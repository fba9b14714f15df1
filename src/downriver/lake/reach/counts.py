"""How many datasets, jobs and columns each dataset and column reaches.

The graph is held as arrays on the driver. Large counts are spread over Spark tasks.
"""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.reach.closure import (
    Counted,
    GraphPart,
    TargetBlock,
    VertexItems,
    count_block,
    count_in_process,
    count_reached,
    longest_paths,
)
from downriver.lake.reach.flow_graph import (
    COLUMN_EDGE_IDS,
    COLUMN_IDS,
    DATASETS,
    EDGE_IDS,
    JOBS,
    NODE_IDS,
    STAR,
    ColumnEdgeArrays,
    ColumnFlowGraph,
    EdgeArrays,
    FlowGraph,
    alias_representatives,
    check_collisions,
    column_edge_ids,
    column_flow_graph,
    column_ids,
    column_keys,
    column_reach_table,
    edge_ids,
    node_flow_graphs,
    node_ids,
    reach_table,
)
from downriver.lake.silver.facts import JOB
from downriver.lake.storage.files import open_file
from downriver.lake.storage.tables import PARQUET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from downriver.lake.reach.closure import Ints
    from downriver.lake.storage.tables import TableStorage

    BlockCounter = Callable[[list[GraphPart], list[TargetBlock]], Iterable[Counted]]

_MIN_DISTRIBUTED_WORK = 20_000_000  # edges times blocks: about ten seconds on one core
_BLOCK_COUNTS = schemas.LakeTable(
    "counted", (("kind", "INT"), ("vertex", "BIGINT"), ("reached", "BIGINT"))
)


def block_counter(storage: TableStorage, path: str) -> BlockCounter:
    """Return a function that counts blocks, on Spark if there are many. Files go below `path`."""
    numbers = itertools.count()

    def count(parts: list[GraphPart], blocks: list[TargetBlock]) -> Iterable[Counted]:
        if sum(len(parts[block.part].source) for block in blocks) < _MIN_DISTRIBUTED_WORK:
            return count_in_process(parts, blocks)
        return _count_on_spark(storage, f"{path}/blocks-{next(numbers)}", parts, blocks)

    return count


def _count_on_spark(
    storage: TableStorage, path: str, parts: list[GraphPart], blocks: list[TargetBlock]
) -> Iterator[Counted]:
    # Parts are written to files and not broadcast: a worker loads only the parts that it needs,
    # and Spark Connect has no broadcasts.
    for number, part in enumerate(parts):
        storage.folder.write(f"{path}-parts/{number}", pickle.dumps(part))
    location = storage.folder.url_of(f"{path}-parts")

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield _count_batch(location, TargetBlock(**row))

    rows = storage.spark.createDataFrame(
        [tuple(block) for block in blocks], "part INT, kind INT, start BIGINT"
    )
    counted = rows.repartition(len(blocks)).mapInArrow(count, _BLOCK_COUNTS.ddl)
    summed = counted.groupBy("kind", "vertex").agg(f.sum("reached").alias("reached"))
    storage.write(_BLOCK_COUNTS.select(summed), path, PARQUET)
    counts = storage.read_arrays(_BLOCK_COUNTS, path)
    for kind in np.unique(counts["kind"]).tolist():
        mine = counts["kind"] == kind
        yield kind, counts["vertex"][mine], counts["reached"][mine]


def _count_batch(location: str, block: TargetBlock) -> pa.RecordBatch:
    import pyarrow as pa

    kind, vertices, reached = count_block(_read_part(f"{location}/{block.part}"), block)
    some = np.flatnonzero(reached)
    kinds = pa.array(np.full(len(some), kind, np.int32))
    return pa.RecordBatch.from_arrays(
        [kinds, pa.array(vertices[some]), pa.array(reached[some])],
        names=["kind", "vertex", "reached"],
    )


@lru_cache(maxsize=1)
def _read_part(location: str) -> GraphPart:
    """Read a part of the graph; a worker counts several blocks of the same part."""
    with open_file(location) as stream:
        return GraphPart(*pickle.load(stream))  # noqa: S301 (written by `_count_on_spark`)


_NODE_COUNTS = schemas.LakeTable("counts", (("node", "BIGINT"), *schemas.REACH.columns[2:]))
_COLUMN_COUNTS = schemas.LakeTable(
    "counts", (*COLUMN_IDS.columns, *schemas.COLUMN_REACH.columns[3:])
)


class ReachTables:
    """The graph as arrays on the driver, and the tables of its reach.

    Arrays are exchanged with Spark through files in the folder `path`.
    """

    def __init__(
        self, storage: TableStorage, path: str, count: BlockCounter, facts: Mapping[str, DataFrame]
    ) -> None:
        self._storage = storage
        self._path = path
        self._nodes, self._columns = facts["facts.nodes"], facts["facts.columns"]
        self.count = count
        with ThreadPoolExecutor() as pool:  # four small Spark jobs at the same time
            self.node_table, self.edge_table, self.column_table, self.column_edge_table = pool.map(
                self.arrays,
                (NODE_IDS, EDGE_IDS, COLUMN_IDS, COLUMN_EDGE_IDS),
                (
                    node_ids(self._nodes),
                    edge_ids(facts["facts.edges"]),
                    column_ids(self._columns),
                    column_edge_ids(facts["facts.derivations"]),
                ),
            )
        check_collisions(self.node_table["node"])
        self.node_counts = count_node_reach(self.node_table, self.edge_table, count)

    def measure(self) -> dict[str, DataFrame]:
        """Return the tables of reach by name."""
        column_counts = count_column_reach(
            self.column_table,
            self.column_edge_table,
            dataset_representatives(self.node_table, self.edge_table),
            self.count,
        )
        return {
            "reach": reach_table(
                self.frame(_NODE_COUNTS, "node_counts", self.node_counts), self._nodes
            ),
            "column_reach": column_reach_table(
                self.frame(_COLUMN_COUNTS, "column_counts", column_counts), self._columns
            ),
        }

    def arrays(self, table: schemas.LakeTable, frame: DataFrame) -> dict[str, Ints]:
        """Return a table of numbers as arrays on the driver."""
        path = f"{self._path}/{table.name}"
        self._storage.write(frame, path, PARQUET)
        return self._storage.read_arrays(table, path)

    def frame(self, table: schemas.LakeTable, name: str, columns: Mapping[str, Ints]) -> DataFrame:
        """Return arrays of the driver as a table in Spark."""
        return self._storage.write_arrays(table, columns, f"{self._path}/{name}")


def count_node_reach(
    node_table: Mapping[str, Ints], edge_table: Mapping[str, Ints], count: BlockCounter
) -> dict[str, Ints]:
    """Return the reach of each dataset. All aliases of a dataset have the same reach."""
    nodes, dense = _dense_ids(node_table["node"], edge_table)
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[np.searchsorted(nodes, node_table["node"])] = node_table["kind"] == JOB
    edges = EdgeArrays(edge_table["kind"], dense["source"], dense["target"], edge_table["last_at"])
    down, up = node_flow_graphs(len(nodes), is_job, edges)
    representative = alias_representatives(len(nodes), edges)
    counts = {"node": nodes}
    for direction, flow in (("downstream", down), ("upstream", up)):
        reached = _count_items(flow, count)
        counts[f"{direction}_datasets"] = reached[DATASETS][representative]
        counts[f"{direction}_jobs"] = reached[JOBS][representative]
        counts[f"{direction}_depth"] = _path_lengths(flow)[representative]
    return {name: values[~is_job] for name, values in counts.items()}


def count_column_reach(
    column_table: Mapping[str, Ints],
    edge_table: Mapping[str, Any],
    representative: Mapping[str, Ints],
    count: BlockCounter,
) -> dict[str, Ints]:
    """Return the reach of each column. `representative` maps aliases to one dataset."""
    dataset, flow = _column_graph(column_table, edge_table, representative)
    counts: dict[str, Ints] = {}
    for direction, directed in (("downstream", flow.down), ("upstream", flow.up)):
        size = len(flow.dataset)
        counts[f"{direction}_columns"] = _count_items(directed, count)[0][:size]
        counts[f"{direction}_depth"] = _path_lengths(directed)[:size]
    return _for_every_alias(column_table, dataset, flow.dataset, flow.field, counts)


def _column_graph(
    column_table: Mapping[str, Ints],
    edge_table: Mapping[str, Any],
    representative: Mapping[str, Ints],
) -> tuple[Ints, ColumnFlowGraph]:
    """Return the representative dataset of each column, and the graph of columns."""
    source, target, dataset = (
        _representative_of(values, representative)
        for values in (edge_table["source"], edge_table["target"], column_table["dataset"])
    )
    ends = (source, edge_table["source_field"], target, edge_table["target_field"])
    return dataset, column_flow_graph(
        dataset, column_table["field"], ColumnEdgeArrays(*ends, edge_table["copies"])
    )


def count_marked_upstream(
    node_table: Mapping[str, Ints], edge_table: Mapping[str, Ints], marks: Ints, count: BlockCounter
) -> dict[str, Ints]:
    """Return the number of upstream datasets with each set of marks, as `with_N`.

    `marks` has bits for each node; a dataset has the marks of all its aliases. Datasets without
    marks are not counted, which is cheap when few are marked.
    """
    nodes, dense = _dense_ids(node_table["node"], edge_table)
    at = np.searchsorted(nodes, node_table["node"])
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[at] = node_table["kind"] == JOB
    edges = EdgeArrays(edge_table["kind"], dense["source"], dense["target"], edge_table["last_at"])
    representative = alias_representatives(len(nodes), edges)
    marked = np.zeros(len(nodes), np.int64)
    np.bitwise_or.at(marked, representative[at], marks)
    _, up = node_flow_graphs(len(nodes), is_job, edges)
    of = np.where(is_job[up.items.of] | (marked[up.items.of] == 0), -1, up.items.of)
    counted = count_reached(up.size, up.source, up.target, VertexItems(of, marked), count)
    counts = {
        f"with_{mark}": values[representative][~is_job] for mark, values in enumerate(counted)
    }
    return {"node": nodes[~is_job], **counts}


def count_marked_columns(
    column_table: Mapping[str, Ints],
    edge_table: Mapping[str, Any],
    representative: Mapping[str, Ints],
    marked: Mapping[str, Ints],
    count: BlockCounter,
) -> dict[str, Ints]:
    """Return the number of `marked` columns upstream of each column, as `marked`."""
    dataset, flow = _column_graph(column_table, edge_table, representative)
    keys = column_keys(flow.dataset, flow.field)
    of = column_keys(_representative_of(marked["dataset"], representative), marked["field"])
    item = np.full(flow.up.size, -1, np.int64)
    item[: len(keys)] = np.where(np.isin(keys, of), np.arange(len(keys)), -1)
    items = VertexItems(item, flow.up.items.kind)
    marks = {"marked": _count_items(flow.up._replace(items=items), count)[0][: len(keys)]}
    return _for_every_alias(column_table, dataset, flow.dataset, flow.field, marks)


def dataset_representatives(
    node_table: Mapping[str, Ints], edge_table: Mapping[str, Ints]
) -> dict[str, Ints]:
    """Return the representative of each node and its aliases."""
    nodes, dense = _dense_ids(node_table["node"], edge_table)
    edges = EdgeArrays(edge_table["kind"], dense["source"], dense["target"], edge_table["last_at"])
    return {"node": nodes, "representative": nodes[alias_representatives(len(nodes), edges)]}


def _representative_of(values: Ints, representative: Mapping[str, Ints]) -> Ints:
    return representative["representative"][np.searchsorted(representative["node"], values)]


def _for_every_alias(
    column_table: Mapping[str, Ints],
    representatives: Ints,
    dataset: Ints,
    field: Ints,
    counts: dict[str, Ints],
) -> dict[str, Ints]:
    """Return the counts of representatives for the columns of all their aliases."""
    keys, wanted = column_keys(dataset, field), column_keys(representatives, column_table["field"])
    named = wanted["field"] != STAR
    at = np.searchsorted(keys, wanted[named])
    repeated = {name: values[at] for name, values in counts.items()}
    return {
        "dataset": column_table["dataset"][named],
        "field": column_table["field"][named],
        **repeated,
    }


def _dense_ids(nodes: Ints, edge_table: Mapping[str, Ints]) -> tuple[Ints, dict[str, Ints]]:
    known = np.unique(nodes)
    return known, {end: np.searchsorted(known, edge_table[end]) for end in ("source", "target")}


def _count_items(flow: FlowGraph, count: BlockCounter) -> list[Ints]:
    counts = count_reached(flow.size, flow.source, flow.target, flow.items, count)
    nothing = [np.zeros(flow.size, np.int64)]
    return [*counts, *nothing * 2][:2]


def _path_lengths(flow: FlowGraph) -> Ints:
    return longest_paths(flow.size, flow.source, flow.target, flow.weight)
