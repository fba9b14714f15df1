"""Retention: which datasets and jobs are old enough to be removed from answers, and which stay."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from downriver.govern.tags import find_tagged
from downriver.graph.walk.node_walk import reach_from
from downriver.model.governance import CERTIFIED_TAGS, Pruned, RetiredEntity
from downriver.model.ids import JobId
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph import GraphSnapshot
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader

_MISSED = 2  # a job is still expected until it has missed this many of its longest gaps
CERTIFIED = "upstream of a certified dataset"
RHYTHM = "it runs rarely: its longest interval between two runs is {days} days"
DECLARED = "declared by code: no run shows when it was last used"
IN_USE = "a remaining job reads or writes it"


class PrunePlan:
    """What a prune removes, by the last event that mentions each dataset and job."""

    def __init__(self, graph: GraphSnapshot, reader: CatalogReader, before: int, now: int) -> None:
        self._graph = graph
        self._reader = reader
        self._before = before
        self._now = now
        self._starts = _starts(reader)
        self._seen = reader.retirement.last_mentions()
        self._kept = self._reasons_to_keep()

    def result(self) -> Pruned:
        """Return the entities to retire and the protected ones, sorted by id."""
        old = {
            node
            for node, at in self._seen.items()
            if at < self._before and node not in self._graph.retired
        }
        reasons = {node: self._kept[node] for node in old if node in self._kept}
        going = old - set(reasons)
        names = self._reader.nodes.by_ids(old)
        return Pruned(
            before=render_time(self._before),
            retired=self._rendered(going, names, {}),
            protected=self._rendered(set(reasons), names, reasons),
            resolved_findings=self._reader.findings.count_resolved(self._before),
            done=False,
        )

    def _rendered(
        self, nodes: set[int], names: Mapping[int, NodeId], reasons: Mapping[int, str]
    ) -> list[RetiredEntity]:
        found = [
            RetiredEntity(
                id=str(names[node]),
                kind="job" if isinstance(names[node], JobId) else "dataset",
                last_seen=render_time(self._seen[node]),
                reason=reasons.get(node, "no event since then mentions it"),
            )
            for node in nodes
        ]
        return sorted(found, key=lambda entity: entity.id)

    def _reasons_to_keep(self) -> dict[int, str]:
        kept: dict[int, str] = {}
        for job in self._reader.history.nodes_of_kind(1):
            reason = self._reason_of_job(job)
            if reason is not None:
                kept[job] = reason
        for node in self._certified():
            kept.setdefault(node, CERTIFIED)
        flow = self._graph.nodes.flow
        active = [
            job
            for job in self._reader.history.nodes_of_kind(1)
            if job in kept or self._seen.get(job, 0) >= self._before
        ]
        around = np.array(active, np.int32)
        for far, edges in (
            (flow.ends.target, flow.ends.leaving.of(around)),
            (flow.ends.source, flow.ends.entering.of(around)),
        ):
            for node in np.unique(far[edges]).tolist():
                for name in self._graph.nodes.identities.group(node):
                    kept.setdefault(name, IN_USE)
        return kept

    def _reason_of_job(self, job: int) -> str | None:
        starts = self._starts.get(job)
        if not starts:
            return DECLARED
        longest = max((later - one for one, later in pairwise(starts)), default=0)
        if starts[-1] + _MISSED * longest >= self._now:
            return RHYTHM.format(days=longest // 86_400_000_000)
        return None

    def _certified(self) -> set[int]:
        roots: set[int] = set()
        for tag in CERTIFIED_TAGS:
            roots |= set(find_tagged(self._graph, self._reader, tag).datasets)
        if not roots:
            return set()
        reached = reach_from(self._graph.nodes, np.array(sorted(roots), np.int32), downstream=False)
        identities = self._graph.nodes.identities
        return {name for node in reached for name in identities.group(node)}


def _starts(reader: CatalogReader) -> dict[int, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for job, _, first_at, _ in reader.history.run_outcomes():
        found[job].append(first_at)
    return found
