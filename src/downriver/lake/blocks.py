"""Counting blocks of targets: here when there is little to do, else as tasks of Spark's."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as f

from downriver.lake import tables
from downriver.lake.closure import Block, Counted, Piece, count_block, count_here
from downriver.lake.places import open_place
from downriver.lake.snapshots import PARQUET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from downriver.lake.stored import Tables

    Count = Callable[[list[Piece], list[Block]], Iterable[Counted]]

_WORTH_SPREADING = 20_000_000  # edges times blocks, some ten seconds of one core
_COUNTED = tables.Table("counted", (("kind", "INT"), ("vertex", "BIGINT"), ("reached", "BIGINT")))


def counting_on(stored: Tables, path: str) -> Count:
    """Return a way to count blocks, by way of files below `path`."""
    made = iter(range(1_000_000))

    def count(pieces: list[Piece], blocks: list[Block]) -> Iterable[Counted]:
        if sum(len(pieces[block.piece].source) for block in blocks) < _WORTH_SPREADING:
            return count_here(pieces, blocks)
        return _count_spread(stored, f"{path}/blocks-{next(made)}", pieces, blocks)

    return count


def _count_spread(
    stored: Tables, path: str, pieces: list[Piece], blocks: list[Block]
) -> Iterator[Counted]:
    # In files and not broadcast: a worker holds only the pieces it counts in, and a session that
    # Spark Connect serves has no broadcasts.
    for number, piece in enumerate(pieces):
        stored.folder.write(f"{path}-pieces/{number}", pickle.dumps(piece))
    place = stored.folder.of(f"{path}-pieces")

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield _counted(place, Block(**row))

    rows = stored.spark.createDataFrame(
        [tuple(block) for block in blocks], "piece INT, kind INT, start BIGINT"
    )
    counted = rows.repartition(len(blocks)).mapInArrow(count, _COUNTED.ddl)
    summed = counted.groupBy("kind", "vertex").agg(f.sum("reached").alias("reached"))
    stored.write(_COUNTED.select(summed), path, PARQUET)
    found = stored.read_arrays(_COUNTED, path)
    for kind in np.unique(found["kind"]).tolist():
        mine = found["kind"] == kind
        yield kind, found["vertex"][mine], found["reached"][mine]


def _counted(place: str, block: Block) -> pa.RecordBatch:
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
    with open_place(place) as stream:
        return Piece(*pickle.load(stream))  # noqa: S301
