"""The edges between datasets and jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from downriver.graph.index.edges import EDGE_COLUMNS, Edges, RetiredEdges, Table, tables
from downriver.graph.index.identities import Identities
from downriver.graph.index.name_index import NameIndex
from downriver.graph.index.sorted_keys import SortedKeys, pairs
from downriver.graph.index.vectors import SMALLEST_FOLD, Flags, Ints, Longs, Times
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.store import CatalogReader

_FLOW = (int(EdgeKind.READS), int(EdgeKind.WRITES), int(EdgeKind.DERIVES))
_NAMING = tuple(
    int(kind) for kind in (EdgeKind.ALIAS, EdgeKind.RENAMED, EdgeKind.SAME, EdgeKind.DIFFERENT)
)


@dataclass(frozen=True, slots=True)
class NodeGraph:
    """The edges along which data flows, and the facts that qualify them. Immutable."""

    flow: Edges
    identities: Identities
    names: NameIndex
    explicit_edges: Edges
    explicit_by_pair: SortedKeys  # (job, dataset) -> number of an explicit edge
    job_seen: Times

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> NodeGraph:
        """Return a graph without nodes."""
        return cls(
            flow=Edges.empty(smallest_fold),
            identities=Identities.empty(smallest_fold),
            names=NameIndex.empty(smallest_fold),
            explicit_edges=Edges.empty(smallest_fold),
            explicit_by_pair=SortedKeys(smallest_fold),
            job_seen=Times.empty(),
        )

    @property
    def size(self) -> int:
        """One more than the largest node id of any edge."""
        return len(self.job_seen)

    @property
    def all_to_all(self) -> bool:
        """Whether every job passes everything it reads to everything it writes."""
        return len(self.explicit_edges) == 0

    def loaded(
        self,
        reader: CatalogReader,
        changed_after: int,
        retired: frozenset[int] = frozenset(),
        retired_edges: RetiredEdges = frozenset(),
    ) -> NodeGraph:
        """Return the graph with the edges that were added or seen again after a log entry.

        No data flows from, to or through a retired node, or along a retired edge.
        """
        graph = self
        hidden = np.array(sorted(retired), np.int64)
        for table in tables(reader.changes.edges(changed_after), EDGE_COLUMNS):
            shown = _without_retired_edges(_without_retired(table, hidden), retired_edges)
            graph = graph._merged(shown)
        graph = replace(
            graph,
            flow=graph.flow.indexed(),
            names=graph.names.loaded(reader),
            explicit_edges=graph.explicit_edges.indexed(),
            explicit_by_pair=graph.explicit_by_pair.indexed(),
            job_seen=graph.job_seen.settled(),
        )
        return replace(graph, identities=graph.identities.spelled_alike(graph._certain()))

    def at(self, moment: int) -> NodeGraph:
        """Return the graph with the identities of its datasets at a moment."""
        identities = self.identities.at(moment)
        if identities is self.identities:
            return self
        return replace(self, identities=identities.spelled_alike(self._certain()))

    def _certain(self) -> dict[int, int]:
        """Return ids that certainly are the same dataset as another one, each with the other."""
        return {**self._contained(), **self.names.twins}

    def _contained(self) -> dict[int, int]:
        """Return pairs of a file that is only written and its folder that is only read."""
        pairs = list(self.names.containments)
        if not pairs:
            return {}
        files, folders = np.array(pairs, np.int32).T
        ends = self.flow.ends
        is_read = ends.source[ends.leaving.of(np.concatenate([files, folders]))]
        is_written = ends.target[ends.entering.of(np.concatenate([files, folders]))]
        filled = np.isin(files, is_written) & ~np.isin(files, is_read)
        used = np.isin(folders, is_read) & ~np.isin(folders, is_written)
        certain = filled & used
        return dict(zip(files[certain].tolist(), folders[certain].tolist(), strict=True))

    def _merged(self, table: Table) -> NodeGraph:
        if not len(table):
            return self
        kind = table["kind"]
        size = int(max(table["source"].max(), table["target"].max())) + 1
        flow = table[np.isin(kind, _FLOW)]
        explicit, added = self.explicit_edges.merged(table[kind == EdgeKind.EXPLICIT])
        numbers = np.arange(len(self.explicit_edges), len(explicit))
        return replace(
            self,
            flow=self.flow.merged(flow)[0],
            identities=self.identities.loaded(table[np.isin(kind, _NAMING)]),
            explicit_edges=explicit,
            explicit_by_pair=self.explicit_by_pair.appended(
                pairs(added["source"], added["target"]), numbers
            ),
            job_seen=_with_jobs_seen(self.job_seen.grown(size), flow),
        )

    def job_last_seen(self, job: int) -> int:
        """Return when a job was last seen to read or write anything; 0 if there is no job."""
        return self.job_seen.at(job) if 0 < job < self.size else 0

    def jobs_last_seen(self, jobs: Ints) -> Longs:
        """Return when each job was last seen to read or write anything; 0 where there is none."""
        return np.where(jobs > 0, self.job_seen.of(jobs), 0)

    def neighbours(
        self, nodes: Iterable[int], kind: EdgeKind, *, downstream: bool
    ) -> dict[int, list[int]]:
        """Return the ids at the other end of the edges of one kind, by id. It asks no store.

        Only edges under exactly these ids count: `Identities.group` returns all ids of a node.
        """
        here = np.fromiter(nodes, np.int32)
        ends = self.flow.ends
        edges, places = (ends.leaving if downstream else ends.entering).of_each(here)
        is_kind = self.flow.kind[edges] == kind
        far = (ends.target if downstream else ends.source)[edges[is_kind]]
        neighbours: dict[int, list[int]] = {}
        for node, other in zip(here[places[is_kind]].tolist(), far.tolist(), strict=True):
            neighbours.setdefault(node, []).append(other)
        return {node: sorted(set(others)) for node, others in neighbours.items()}

    def jobs(self, edges: Ints) -> Ints:
        """Return the job behind each edge, 0 where a dataset event reported the edge itself."""
        flow = self.flow
        return _jobs(
            flow.kind[edges], flow.ends.source[edges], flow.ends.target[edges], flow.via[edges]
        )

    def explicit(self, edges: Ints, as_of: int) -> Flags:
        """Return which of these edges are writes with explicit sources in DERIVES edges."""
        flags = np.zeros(len(edges), np.bool_)
        if not self.all_to_all:
            keys, places = self._write_keys(edges)
            found, at = self.explicit_by_pair.find_each(keys)
            known = self.explicit_edges.first_at.of(found) <= as_of
            flags[places[at[known]]] = True
        return flags

    def _write_keys(self, edges: Ints) -> tuple[Longs, Longs]:
        """Return (job, dataset) of the writes among edges, for every name, and their positions."""
        writes = np.flatnonzero(self.flow.kind[edges] == EdgeKind.WRITES)
        jobs = self.flow.ends.source[edges[writes]]
        datasets, at = self.identities.every_name(self.flow.ends.target[edges[writes]])
        return pairs(jobs[at], datasets), writes[at]


def _without_retired(table: Table, retired: Longs) -> Table:
    if not len(retired):
        return table
    of_naming = np.isin(table["kind"], _NAMING)
    ends = (np.isin(table[end], retired) for end in ("source", "target", "via"))
    shown: Table = table[of_naming | ~np.logical_or.reduce([*ends])]
    return shown


def _without_retired_edges(table: Table, retired: RetiredEdges) -> Table:
    if not retired:
        return table
    ends = np.array(sorted(retired), np.int64)
    hidden = pairs(ends[:, 0], ends[:, 1])
    # A job may state directly that one dataset derives from another, beside both of its edges.
    parts = (("source", "target"), ("source", "via"), ("via", "target"))
    matches = [np.isin(pairs(table[one], table[other]), hidden) for one, other in parts]
    of_naming = np.isin(table["kind"], _NAMING)
    shown: Table = table[of_naming | ~np.logical_or.reduce(matches)]
    return shown


def _with_jobs_seen(seen: Times, flow: Table) -> Times:
    if not len(flow):
        return seen
    jobs = _jobs(flow["kind"], flow["source"], flow["target"], flow["via"])
    distinct, places = np.unique(jobs, return_inverse=True)
    latest = seen.of(distinct)
    np.maximum.at(latest, places, flow["last_at"])
    return seen.replaced(distinct, latest)


def _jobs(kind: npt.NDArray[Any], source: Ints, target: Ints, via: Ints) -> Ints:
    of_reads_and_derives = np.where(kind == EdgeKind.READS, target, via)
    return np.where(kind == EdgeKind.WRITES, source, of_reads_and_derives)
