"""How many datasets, jobs and columns each dataset and column reaches.

The graph is held as arrays on the driver. Large counts are spread over Spark tasks.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.reach.closure import (
    Block,
    Counted,
    Piece,
    VertexItems,
    count_block,
    count_in_process,
    count_reached,
    longest_paths,
)
from downriver.lake.reach.flow_graph import (
    DATASETS,
    JOBS,
    STAR,
    ColumnEdgeArrays,
    ColumnFlowGraph,
    EdgeArrays,
    FlowGraph,
    alias_representatives,
    column_flow_graph,
    column_keys,
    node_flow_graphs,
)
from downriver.lake.reach.hashed_ids import (
    COLUMN_EDGE_IDS,
    COLUMN_IDS,
    EDGE_IDS,
    NODE_IDS,
    check_collisions,
    column_edge_ids,
    column_ids,
    column_reach_table,
    edge_ids,
    node_ids,
    reach_table,
)
from downriver.lake.silver.facts import JOB
from downriver.lake.storage.files import open_file
from downriver.lake.storage.versions import PARQUET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from downriver.lake.reach.closure import Ints
    from downriver.lake.storage.tables import TableStorage

    Count = Callable[[list[Piece], list[Block]], Iterable[Counted]]

_MIN_DISTRIBUTED_WORK = 20_000_000  # edges times blocks, some ten seconds of one core
_BLOCK_COUNTS = schemas.LakeTable(
    "counted", (("kind", "INT"), ("vertex", "BIGINT"), ("reached", "BIGINT"))
)


def block_counter(stored: TableStorage, path: str) -> Count:
    """Return a way to count blocks, by way of files below `path`."""
    made = iter(range(1_000_000))

    def count(pieces: list[Piece], blocks: list[Block]) -> Iterable[Counted]:
        if sum(len(pieces[block.piece].source) for block in blocks) < _MIN_DISTRIBUTED_WORK:
            return count_in_process(pieces, blocks)
        return _count_on_spark(stored, f"{path}/blocks-{next(made)}", pieces, blocks)

    return count


def _count_on_spark(
    stored: TableStorage, path: str, pieces: list[Piece], blocks: list[Block]
) -> Iterator[Counted]:
    # In files and not broadcast: a worker holds only the pieces it counts in, and a session that
    # Spark Connect serves has no broadcasts.
    for number, piece in enumerate(pieces):
        stored.folder.write(f"{path}-pieces/{number}", pickle.dumps(piece))
    place = stored.folder.url_of(f"{path}-pieces")

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield _count_batch(place, Block(**row))

    rows = stored.spark.createDataFrame(
        [tuple(block) for block in blocks], "piece INT, kind INT, start BIGINT"
    )
    counted = rows.repartition(len(blocks)).mapInArrow(count, _BLOCK_COUNTS.ddl)
    summed = counted.groupBy("kind", "vertex").agg(f.sum("reached").alias("reached"))
    stored.write(_BLOCK_COUNTS.select(summed), path, PARQUET)
    found = stored.read_arrays(_BLOCK_COUNTS, path)
    for kind in np.unique(found["kind"]).tolist():
        mine = found["kind"] == kind
        yield kind, found["vertex"][mine], found["reached"][mine]


def _count_batch(place: str, block: Block) -> pa.RecordBatch:
    import pyarrow as pa

    kind, vertices, reached = count_block(_read_piece(f"{place}/{block.piece}"), block)
    some = np.flatnonzero(reached)
    kinds = pa.array(np.full(len(some), kind, np.int32))
    return pa.RecordBatch.from_arrays(
        [kinds, pa.array(vertices[some]), pa.array(reached[some])],
        names=["kind", "vertex", "reached"],
    )


@lru_cache(maxsize=1)
def _read_piece(place: str) -> Piece:
    """Read a piece, once for the blocks that one worker counts in it. We wrote it ourselves."""
    with open_file(place) as stream:
        return Piece(*pickle.load(stream))  # noqa: S301


_NODE_COUNTS = schemas.LakeTable("counts", (("node", "BIGINT"), *schemas.REACH.columns[2:]))
_COLUMN_COUNTS = schemas.LakeTable(
    "counts", (*COLUMN_IDS.columns, *schemas.COLUMN_REACH.columns[3:])
)


class ReachTables:
    """Measures how far everything reaches, by way of numbers in a folder of their own."""

    def __init__(
        self, stored: TableStorage, path: str, count: Count, facts: Mapping[str, DataFrame]
    ) -> None:
        self._tables = stored
        self._path = path
        self._nodes, self._columns = facts["facts.nodes"], facts["facts.columns"]
        self.count = count
        with ThreadPoolExecutor() as pool:  # four small jobs: one alone leaves Spark idle
            self.numbers, self.links, self.fields, self.steps = pool.map(
                self.arrays,
                (NODE_IDS, EDGE_IDS, COLUMN_IDS, COLUMN_EDGE_IDS),
                (
                    node_ids(self._nodes),
                    edge_ids(facts["facts.edges"]),
                    column_ids(self._columns),
                    column_edge_ids(facts["facts.derivations"]),
                ),
            )
        check_collisions(self.numbers["node"])
        self.of_nodes = count_node_reach(self.numbers, self.links, count)

    def measure(self) -> dict[str, DataFrame]:
        """Return the tables of reach by name."""
        of_columns = count_column_reach(
            self.fields, self.steps, dataset_representatives(self.numbers, self.links), self.count
        )
        return {
            "reach": reach_table(self.frame(_NODE_COUNTS, "of_nodes", self.of_nodes), self._nodes),
            "column_reach": column_reach_table(
                self.frame(_COLUMN_COUNTS, "of_columns", of_columns), self._columns
            ),
        }

    def arrays(self, table: schemas.LakeTable, frame: DataFrame) -> dict[str, Ints]:
        """Bring a table of numbers to the driver."""
        path = f"{self._path}/{table.name}"
        self._tables.write(frame, path, PARQUET)
        return self._tables.read_arrays(table, path)

    def frame(self, table: schemas.LakeTable, name: str, columns: Mapping[str, Ints]) -> DataFrame:
        """Take columns of numbers back to Spark."""
        return self._tables.write_arrays(table, columns, f"{self._path}/{name}")


def count_node_reach(
    numbers: Mapping[str, Ints], links: Mapping[str, Ints], count: Count
) -> dict[str, Ints]:
    """Return how far each dataset reaches; every name of one dataset reaches as far."""
    nodes, dense = _dense_ids(numbers["node"], links)
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[np.searchsorted(nodes, numbers["node"])] = numbers["kind"] == JOB
    edges = EdgeArrays(links["kind"], dense["source"], dense["target"], links["last_at"])
    down, up = node_flow_graphs(len(nodes), is_job, edges)
    speaker = alias_representatives(len(nodes), edges)
    found = {"node": nodes}
    for way, flow in (("downstream", down), ("upstream", up)):
        reached = _count_items(flow, count)
        found[f"{way}_datasets"] = reached[DATASETS][speaker]
        found[f"{way}_jobs"] = reached[JOBS][speaker]
        found[f"{way}_depth"] = _path_lengths(flow)[speaker]
    return {name: values[~is_job] for name, values in found.items()}


def count_column_reach(
    fields: Mapping[str, Ints], links: Mapping[str, Any], speaker: Mapping[str, Ints], count: Count
) -> dict[str, Ints]:
    """Return how far each column reaches. `speaker` says which name stands for a dataset."""
    dataset, flow = _column_graph(fields, links, speaker)
    found: dict[str, Ints] = {}
    for way, directed in (("downstream", flow.down), ("upstream", flow.up)):
        size = len(flow.dataset)
        found[f"{way}_columns"] = _count_items(directed, count)[0][:size]
        found[f"{way}_depth"] = _path_lengths(directed)[:size]
    return _for_every_alias(fields, dataset, flow.dataset, flow.field, found)


def _column_graph(
    fields: Mapping[str, Ints], links: Mapping[str, Any], speaker: Mapping[str, Ints]
) -> tuple[Ints, ColumnFlowGraph]:
    """Return which dataset stands for that of each field, and the graph of columns."""
    source, target, dataset = (
        _representative_of(values, speaker)
        for values in (links["source"], links["target"], fields["dataset"])
    )
    ends = (source, links["source_field"], target, links["target_field"])
    return dataset, column_flow_graph(
        dataset, fields["field"], ColumnEdgeArrays(*ends, links["copies"])
    )


def count_marked_upstream(
    numbers: Mapping[str, Ints], links: Mapping[str, Ints], marks: Ints, count: Count
) -> dict[str, Ints]:
    """Return how many datasets with each set of marks lie upstream of each dataset, as `with_N`.

    `marks` has bits for each of `numbers`; a dataset has those of all its names. Those without any
    are not counted: where few are marked, that costs little.
    """
    nodes, dense = _dense_ids(numbers["node"], links)
    at = np.searchsorted(nodes, numbers["node"])
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[at] = numbers["kind"] == JOB
    edges = EdgeArrays(links["kind"], dense["source"], dense["target"], links["last_at"])
    speaker = alias_representatives(len(nodes), edges)
    marked = np.zeros(len(nodes), np.int64)
    np.bitwise_or.at(marked, speaker[at], marks)
    _, up = node_flow_graphs(len(nodes), is_job, edges)
    of = np.where(is_job[up.items.of] | (marked[up.items.of] == 0), -1, up.items.of)
    counted = count_reached(up.size, up.source, up.target, VertexItems(of, marked), count)
    found = {f"with_{mark}": values[speaker][~is_job] for mark, values in enumerate(counted)}
    return {"node": nodes[~is_job], **found}


def count_marked_columns(
    fields: Mapping[str, Ints],
    links: Mapping[str, Any],
    speaker: Mapping[str, Ints],
    marked: Mapping[str, Ints],
    count: Count,
) -> dict[str, Ints]:
    """Return how many of the `marked` columns lie upstream of each column, as `marked`."""
    dataset, flow = _column_graph(fields, links, speaker)
    keys = column_keys(flow.dataset, flow.field)
    of = column_keys(_representative_of(marked["dataset"], speaker), marked["field"])
    item = np.full(flow.up.size, -1, np.int64)
    item[: len(keys)] = np.where(np.isin(keys, of), np.arange(len(keys)), -1)
    items = VertexItems(item, flow.up.items.kind)
    marks = {"marked": _count_items(flow.up._replace(items=items), count)[0][: len(keys)]}
    return _for_every_alias(fields, dataset, flow.dataset, flow.field, marks)


def dataset_representatives(
    numbers: Mapping[str, Ints], links: Mapping[str, Ints]
) -> dict[str, Ints]:
    """Return which node stands for all names of each."""
    nodes, dense = _dense_ids(numbers["node"], links)
    edges = EdgeArrays(links["kind"], dense["source"], dense["target"], links["last_at"])
    return {"node": nodes, "speaker": nodes[alias_representatives(len(nodes), edges)]}


def _representative_of(values: Ints, speaker: Mapping[str, Ints]) -> Ints:
    return speaker["speaker"][np.searchsorted(speaker["node"], values)]


def _for_every_alias(
    fields: Mapping[str, Ints], spoken: Ints, dataset: Ints, field: Ints, found: dict[str, Ints]
) -> dict[str, Ints]:
    """Give every column, under each name of its dataset, what the one that stands for it has."""
    keys, wanted = column_keys(dataset, field), column_keys(spoken, fields["field"])
    named = wanted["field"] != STAR
    at = np.searchsorted(keys, wanted[named])
    counts = {name: values[at] for name, values in found.items()}
    return {"dataset": fields["dataset"][named], "field": fields["field"][named], **counts}


def _dense_ids(nodes: Ints, links: Mapping[str, Ints]) -> tuple[Ints, dict[str, Ints]]:
    known = np.unique(nodes)
    return known, {end: np.searchsorted(known, links[end]) for end in ("source", "target")}


def _count_items(flow: FlowGraph, count: Count) -> list[Ints]:
    found = count_reached(flow.size, flow.source, flow.target, flow.items, count)
    nothing = [np.zeros(flow.size, np.int64)]
    return [*found, *nothing * 2][:2]


def _path_lengths(flow: FlowGraph) -> Ints:
    return longest_paths(flow.size, flow.source, flow.target, flow.weight)
