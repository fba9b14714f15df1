"""Which datasets and jobs feed which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from downriver.graph.index.adjacency import SMALLEST_FOLD, Flags, GrowingArray, Ints, Longs
from downriver.graph.index.edges import EDGE_COLUMNS, Edges, Table, tables
from downriver.graph.index.identities import Identities
from downriver.graph.index.sorted_keys import SortedKeys, pairs
from downriver.graph.walk.result import VisitMarks
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from downriver.store import CatalogReader

_FLOW = (int(EdgeKind.READS), int(EdgeKind.WRITES), int(EdgeKind.DERIVES))
_NAMING = (int(EdgeKind.ALIAS), int(EdgeKind.RENAMED))


class NodeGraph:
    """The edges along which data flows, and what decides how to read them."""

    def __init__(self, smallest_fold: int = SMALLEST_FOLD) -> None:
        self.flow = Edges(smallest_fold)
        self.identities = Identities(smallest_fold)
        self._explicit = Edges(smallest_fold)
        self._explicit_by_pair = SortedKeys(smallest_fold)  # (job, dataset) -> edge
        self._job_seen: GrowingArray[np.int64] = GrowingArray(np.int64)
        self.reached, self.opened = VisitMarks(), VisitMarks()  # in the walk under way

    @property
    def size(self) -> int:
        """One more than the largest node id an edge has named."""
        return self._job_seen.size

    @property
    def all_to_all(self) -> bool:
        """True while every job passes all it reads to all it writes."""
        return len(self._explicit) == 0

    def load(self, reader: CatalogReader, changed_after: int) -> None:
        """Add new edges and move the times of known ones."""
        for table in tables(reader.edges(changed_after), EDGE_COLUMNS):
            kind = table["kind"]
            self._job_seen.grow(int(max(table["source"].max(), table["target"].max())) + 1)
            self._load_flow(table[np.isin(kind, _FLOW)])
            self._load_explicit(table[kind == EdgeKind.EXPLICIT])
            self.identities.load(table[np.isin(kind, _NAMING)])

    def _load_flow(self, table: Table) -> None:
        self.flow.put(table)
        jobs = _jobs(table["kind"], table["source"], table["target"], table["via"])
        np.maximum.at(self._job_seen.view, jobs, table["last_at"])

    def _load_explicit(self, table: Table) -> None:
        start = len(self._explicit)
        new = self._explicit.put(table)
        numbers = np.arange(start, start + len(new))
        self._explicit_by_pair.extend(pairs(new["source"], new["target"]), numbers)

    def job_last_seen(self, job: int) -> int:
        """Return when a job was last seen to read or write anything; 0 if there is no job."""
        return int(self._job_seen.view[job]) if 0 < job < self.size else 0

    def jobs_last_seen(self, jobs: Ints) -> Longs:
        """Return when each job was last seen to read or write anything; 0 where there is none."""
        seen: Longs = self._job_seen.view[jobs]
        return np.where(jobs > 0, seen, 0)

    def jobs(self, edges: Ints) -> Ints:
        """Return the job behind each edge, 0 where a dataset told of itself."""
        flow = self.flow
        return _jobs(
            flow.kind.view[edges],
            flow.ends.source.view[edges],
            flow.ends.target.view[edges],
            flow.via.view[edges],
        )

    def explicit(self, edges: Ints, as_of: int) -> Flags:
        """Tell which of these edges are writes whose sources DERIVES edges spell out instead."""
        flags = np.zeros(len(edges), np.bool_)
        if len(self._explicit):
            keys, places = self._write_keys(edges)
            found, at = self._explicit_by_pair.find_each(keys)
            known = self._explicit.first_at.view[found] <= as_of
            flags[places[at[known]]] = True
        return flags

    def _write_keys(self, edges: Ints) -> tuple[Longs, Longs]:
        """Return (job, dataset) of the writes among edges under every name, and their places."""
        writes = np.flatnonzero(self.flow.kind.view[edges] == EdgeKind.WRITES)
        jobs = self.flow.ends.source.view[edges[writes]]
        datasets, at = self.identities.every_name(self.flow.ends.target.view[edges[writes]])
        return pairs(jobs[at], datasets), writes[at]


def _jobs(kind: npt.NDArray[Any], source: Ints, target: Ints, via: Ints) -> Ints:
    of_reads_and_derives = np.where(kind == EdgeKind.READS, target, via)
    return np.where(kind == EdgeKind.WRITES, source, of_reads_and_derives)
