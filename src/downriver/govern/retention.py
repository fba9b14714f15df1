"""Retention: selects the datasets and jobs that are old enough to be removed from answers."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from downriver.govern.drift.series import DAY
from downriver.govern.tags import find_tagged
from downriver.graph.walk.node_walk import reach_from
from downriver.model.facts import EdgeKind
from downriver.model.governance import CERTIFIED_TAGS
from downriver.model.ids import JobId
from downriver.model.trust.retention import Pruned, RetiredEdge, RetiredEntity, RetiredRuns
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph import GraphSnapshot
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader

RUNS_KEPT = 20  # of each job: rhythm and drift are measured on them
_MISSED = 2  # a job is expected until this many of its longest gaps have passed
CERTIFIED = "upstream of a certified dataset"
RHYTHM = "it runs rarely: its longest interval between two runs is {days} days"
LATEST = "the latest {count} runs of a job stay"
DECLARED = "declared by code: no run shows when it was last used"
IN_USE = "a remaining job reads or writes it"


class PrunePlan:
    """The plan of a prune, by the last event that mentions each dataset and job."""

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
            retired_edges=self._edges(going, protected=False),
            protected_edges=self._edges(going, protected=True),
            retired_runs=self._runs(going, protected=False),
            protected_runs=self._runs(going, protected=True),
            resolved_findings=self._reader.findings.count_resolved(self._before),
            done=False,
        )

    def _edges(self, going: set[int], *, protected: bool) -> list[RetiredEdge]:
        """Return the stale edges that are removed, or those that stay.

        An edge is stale if its job had only other edges for a long time.
        """
        flow, retired = self._graph.nodes.flow, []
        period = self._now - self._before
        for number in np.flatnonzero(flow.last_at.values < self._before).tolist():
            ends = int(flow.ends.source[number]), int(flow.ends.target[number])
            kind = int(flow.kind[number])
            if kind not in (EdgeKind.READS, EdgeKind.WRITES) or going.intersection(ends):
                continue
            job, dataset = ends if kind == EdgeKind.WRITES else ends[::-1]
            last_at = flow.last_at.at(number)
            if self._graph.nodes.job_last_seen(job) - last_at <= period:
                continue
            reason = self._reason_of_edge(job, dataset, kind, period)
            if (reason is not None) == protected:
                retired.append((ends, last_at, reason or "the job was seen without it since then"))
        names = self._reader.nodes.by_ids({node for ends, *_ in retired for node in ends})
        found = [
            RetiredEdge(
                source=str(names[source]),
                target=str(names[target]),
                last_seen=render_time(last_at),
                reason=reason,
            )
            for (source, target), last_at, reason in retired
        ]
        return sorted(found, key=lambda edge: (edge.source, edge.target))

    def _runs(self, going: set[int], *, protected: bool) -> list[RetiredRuns]:
        """Return the old runs of each job that are removed from lists, or those that stay."""
        listed_since = self._reader.retirement.retired_runs()
        found: list[tuple[int, int, int, str]] = []
        for job, starts in self._starts.items():
            since = listed_since.get(job, 0)
            kept_from = starts[-RUNS_KEPT] if len(starts) > RUNS_KEPT else 0
            certified = job in self._certified_upstream
            cut = since if certified else max(since, min(self._before, kept_from))
            old = sum(since <= at < self._before for at in starts)
            retired = sum(since <= at < cut for at in starts)
            if job in going or job in self._graph.retired:
                continue
            if not protected and retired:
                found.append((job, cut, retired, "older than the period"))
            elif protected and old > retired:
                reason = CERTIFIED if certified else LATEST.format(count=RUNS_KEPT)
                found.append((job, self._before, old - retired, reason))
        names = self._reader.nodes.by_ids(job for job, *_ in found)
        rendered = [
            RetiredRuns(job=str(names[job]), before=render_time(at), runs=runs, reason=reason)
            for job, at, runs, reason in found
        ]
        return sorted(rendered, key=lambda each: each.job)

    def _reason_of_edge(self, job: int, dataset: int, kind: int, period: int) -> str | None:
        """Return why a stale edge stays."""
        starts = self._starts.get(job, [])
        longest = max((later - one for one, later in pairwise(starts)), default=0)
        if _MISSED * longest >= period:
            return RHYTHM.format(days=longest // DAY)
        upstream = self._certified_upstream
        feeds = job if kind == EdgeKind.READS else dataset
        return CERTIFIED if feeds in upstream else None

    def _rendered(
        self, nodes: set[int], names: Mapping[int, NodeId], reasons: Mapping[int, str]
    ) -> list[RetiredEntity]:
        entities = [
            RetiredEntity(
                id=str(names[node]),
                kind="job" if isinstance(names[node], JobId) else "dataset",
                last_seen=render_time(self._seen[node]),
                reason=reasons.get(node, "no event since then mentions it"),
            )
            for node in nodes
        ]
        return sorted(entities, key=lambda entity: entity.id)

    def _reasons_to_keep(self) -> dict[int, str]:
        kept: dict[int, str] = {}
        for job in self._reader.history.nodes_of_kind(1):
            reason = self._reason_of_job(job)
            if reason is not None:
                kept[job] = reason
        for node in self._certified_upstream:
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
            return RHYTHM.format(days=longest // DAY)
        return None

    @cached_property
    def _certified_upstream(self) -> set[int]:
        roots: set[int] = set()
        for tag in CERTIFIED_TAGS:
            roots |= set(find_tagged(self._graph, self._reader, tag).datasets)
        if not roots:
            return set()
        reached = reach_from(self._graph.nodes, np.array(sorted(roots), np.int32), downstream=False)
        identities = self._graph.nodes.identities
        return {name for node in reached for name in identities.group(node)}


def _starts(reader: CatalogReader) -> dict[int, list[int]]:
    starts: defaultdict[int, list[int]] = defaultdict(list)
    for job, _, first_at, _ in reader.history.run_outcomes():
        starts[job].append(first_at)
    return starts
