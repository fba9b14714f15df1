"""The graph that data flows through, as arrays of numbers: how the server walks, made explicit.

A job passes all it reads to all it writes, except to datasets whose sources in it are spelled out.
Several names of one dataset are one vertex. `*` stands for every column of its dataset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.lake.closure import Items
from downriver.lake.condense import Ints, weak_components
from downriver.model.facts import EdgeKind

STAR = 0  # the number of the field `*`
DATASETS, JOBS = 0, 1  # kinds of what is counted

Flags = npt.NDArray[np.bool_]


class Flow(NamedTuple):
    """A graph to count in. `weight` is what an edge adds to the depth."""

    size: int
    source: Ints
    target: Ints
    weight: Ints
    items: Items


class Links(NamedTuple):
    """Edges between nodes by number, as the facts have them."""

    kind: Ints
    source: Ints
    target: Ints
    last_at: Ints

    def only(self, *kinds: EdgeKind) -> Links:
        """Return the edges of some kinds."""
        wanted = np.isin(self.kind, [int(kind) for kind in kinds])
        return Links(*(column[wanted] for column in self))


def join_names(size: int, links: Links) -> Ints:
    """Return for each node the one that stands for all its names.

    Of aliases only those that a dataset's latest symlinks facet gives count.
    """
    alias = links.only(EdgeKind.ALIAS)
    latest = np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(latest, alias.source, alias.last_at)
    current = alias.last_at == latest[alias.source]
    renamed = links.only(EdgeKind.RENAMED)
    source = np.concatenate([alias.source[current], renamed.source])
    target = np.concatenate([alias.target[current], renamed.target])
    return weak_components(size, source, target)


def node_flows(size: int, is_job: Flags, links: Links) -> tuple[Flow, Flow]:
    """Return the graphs to walk downstream and upstream from datasets."""
    speaker = join_names(size, links)
    reads, writes, derives = (
        _spoken(links.only(kind), speaker)
        for kind in (EdgeKind.READS, EdgeKind.WRITES, EdgeKind.DERIVES)
    )
    explicit = _is_among(writes, _spoken(links.only(EdgeKind.EXPLICIT), speaker), size)
    implicit = Links(*(column[~explicit] for column in writes))
    kind = np.where(is_job, JOBS, DATASETS).astype(np.int64)
    down = _flow(
        size,
        [(reads.source, reads.target, 1), (implicit.source, implicit.target, 0)],
        derives,
        Items(speaker, kind),
    )
    # A job that spells out a dataset's sources is met on the way up, and not passed through: it
    # stands there a second time, without the edges that lead on.
    met = size + np.flatnonzero(explicit)
    up = _flow(
        size + len(writes.kind),
        [
            (reads.target, reads.source, 0),
            (implicit.target, implicit.source, 1),
            (writes.target[explicit], met, 1),
        ],
        Links(derives.kind, derives.target, derives.source, derives.last_at),
        Items(np.concatenate([speaker, writes.source]), kind),
    )
    return down, up


def _spoken(links: Links, speaker: Ints) -> Links:
    return links._replace(source=speaker[links.source], target=speaker[links.target])


def _is_among(links: Links, others: Links, size: int) -> Flags:
    ends = links.source * size + links.target
    flags: Flags = np.isin(ends, others.source * size + others.target)
    return flags


def _flow(size: int, through: list[tuple[Ints, Ints, int]], derives: Links, items: Items) -> Flow:
    parts = [*through, (derives.source, derives.target, 1)]
    return Flow(
        size,
        np.concatenate([source for source, _, _ in parts]),
        np.concatenate([target for _, target, _ in parts]),
        np.concatenate([np.full(len(source), w, np.int64) for source, _, w in parts]),
        items,
    )


class ColumnLinks(NamedTuple):
    """Derivations between columns, each a dataset and a field; `copies`: each field to its own."""

    source: Ints
    source_field: Ints
    target: Ints
    target_field: Ints
    copies: Flags

    def only(self, wanted: Flags) -> ColumnLinks:
        """Return some of these."""
        return ColumnLinks(
            self.source[wanted],
            self.source_field[wanted],
            self.target[wanted],
            self.target_field[wanted],
            self.copies[wanted],
        )


class ColumnFlow(NamedTuple):
    """The graph of columns, and the vertex of each (dataset, field)."""

    down: Flow
    dataset: Ints
    field: Ints

    @property
    def up(self) -> Flow:
        """The same graph against the flow."""
        return self.down._replace(source=self.down.target, target=self.down.source)


def column_flow(dataset: Ints, field: Ints, links: ColumnLinks) -> ColumnFlow:
    """Return the graph of columns. Two more vertices stand for a dataset's columns together.

    What arrives at `*` goes on to every column; what leaves from `*` comes from every column. Only
    where a dataset has no known column, `*` is counted itself.
    """
    dataset, field, links = _with_copies(dataset, field, links)
    keys, size = _numbered(dataset, field)
    datasets = np.unique(np.concatenate([dataset, links.source, links.target]))
    arriving, leaving = size, size + len(datasets)  # where `*` begins as a target, as a source

    def vertex(of: Ints, name: Ints, star: int) -> Ints:
        column = np.searchsorted(keys, pairs(of, name))
        whole = star + np.searchsorted(datasets, of)
        return np.where(name == STAR, whole, np.minimum(column, size))

    columns = np.arange(size)
    of_column = np.searchsorted(datasets, keys["dataset"])
    everyone = np.arange(len(datasets))
    empty = np.setdiff1d(everyone, of_column)
    # Only where `*` is named: else it would tie together columns that have nothing in common.
    filled = np.isin(keys["dataset"], links.target[links.target_field == STAR])
    drawn = np.isin(keys["dataset"], links.source[links.source_field == STAR])
    parts = [
        (
            vertex(links.source, links.source_field, leaving),
            vertex(links.target, links.target_field, arriving),
            1,
        ),
        (arriving + of_column[filled], columns[filled], 0),
        (columns[drawn], leaving + of_column[drawn], 0),
        (arriving + empty, leaving + empty, 0),
    ]
    item = np.full(size + 2 * len(datasets), -1, np.int64)
    item[:size] = columns
    item[arriving + empty] = size + empty
    kinds = np.zeros(size + len(datasets), np.int64)
    nothing = Links(*(np.zeros(0, np.int64) for _ in Links._fields))
    flow = _flow(len(item), parts, nothing, Items(item, kinds))
    return ColumnFlow(flow, keys["dataset"], keys["field"])


_PAIR = np.dtype([("dataset", np.int64), ("field", np.int64)])


def pairs(dataset: Ints, field: Ints) -> npt.NDArray[np.void]:
    """Return columns as values that sort and compare."""
    made = np.empty(len(dataset), _PAIR)
    made["dataset"], made["field"] = dataset, field
    return made


def _numbered(dataset: Ints, field: Ints) -> tuple[npt.NDArray[np.void], int]:
    keys = np.unique(pairs(dataset[field != STAR], field[field != STAR]))
    return keys, len(keys)


def _with_copies(dataset: Ints, field: Ints, links: ColumnLinks) -> tuple[Ints, Ints, ColumnLinks]:
    """Replace `* → *` copies by an edge for every field known, or made known by another copy."""
    known = np.unique(
        pairs(
            np.concatenate([dataset, links.source, links.target]),
            np.concatenate([field, links.source_field, links.target_field]),
        )
    )
    known = known[known["field"] != STAR]
    copies, others = links.only(links.copies), links.only(~links.copies)
    copied = _copy_fields(known, copies)
    while len(grown := np.union1d(known, pairs(copied.target, copied.target_field))) > len(known):
        known = grown
        copied = _copy_fields(known, copies)
    # Where no field is known, what is copied is known only as a whole.
    whole = copies.only(~np.isin(copies.source, known["dataset"]))
    return known["dataset"], known["field"], _together(others, copied, whole)


def _together(*links: ColumnLinks) -> ColumnLinks:
    return ColumnLinks(
        np.concatenate([part.source for part in links]),
        np.concatenate([part.source_field for part in links]),
        np.concatenate([part.target for part in links]),
        np.concatenate([part.target_field for part in links]),
        np.concatenate([part.copies for part in links]),
    )


def _copy_fields(known: npt.NDArray[np.void], copies: ColumnLinks) -> ColumnLinks:
    starts = np.searchsorted(known["dataset"], copies.source)
    lengths = np.searchsorted(known["dataset"], copies.source, side="right") - starts
    which = np.repeat(np.arange(len(copies.source)), lengths)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    fields = known["field"][starts[which] + offset]
    return ColumnLinks(
        copies.source[which], fields, copies.target[which], fields, np.zeros(len(which), np.bool_)
    )
