"""The flow graph as arrays: the rules of the server's walks, as explicit edges.

A job passes everything it reads to everything it writes, except to datasets whose sources are
given explicitly. Aliases of a dataset are one vertex. `*` stands for all columns of a dataset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.lake.reach.closure import Ints, VertexItems, weak_components
from downriver.model.facts import EdgeKind

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
    """Return the statements that two names are one dataset, without those taken back later."""
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
        """Return the edges for which `wanted` is true."""
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
