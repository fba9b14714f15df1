"""KPIs at moments in the past, from the times at which nodes, edges and runs were first seen.

The integrity of certified paths is measured only if it is asked for: it takes a trace of each
certified dataset for each moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.govern.drift.series import DAY
from downriver.govern.kpis import DAYS
from downriver.govern.tags import certified_integrity
from downriver.model.facts import EdgeKind, RunState
from downriver.model.views.history import KpiPoint
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.govern.kpis import Flags, Ints, KpiInputs


class _Nodes(NamedTuple):
    """All datasets and jobs by canonical number, with the time of first sight."""

    number: Ints
    is_job: Flags
    first_at: Ints


def measure_history(
    view: KpiInputs, moments: Iterable[int], *, certified: bool = False
) -> list[KpiPoint]:
    """Return KPIs as of each moment; with `certified`, also the integrity of certified paths."""
    nodes = _read_nodes(view)
    ended = _read_runs(view)
    points = [(moment, _point(view, nodes, ended, moment)) for moment in moments]
    if certified:
        for moment, point in points:
            share = certified_integrity(view.graph, view.reader, moment, view.stale_days)
            point.certified_path_integrity = share.percent
    return [point for _, point in points]


def first_moment(view: KpiInputs) -> int | None:
    """Return when the first node was seen."""
    nodes = _read_nodes(view)
    return int(nodes.first_at.min()) if len(nodes.number) else None


def _read_nodes(view: KpiInputs) -> _Nodes:
    history, canonical = view.reader.history, view.graph.nodes.identities.canonical
    kinds = {node: kind for kind in (0, 1) for node in history.nodes_of_kind(kind)}
    first: dict[int, int] = {}
    for node, span in view.reader.nodes.spans(kinds).items():
        number = canonical(node)
        first[number] = min(first.get(number, span.first.at), span.first.at)
    numbers = sorted(first)
    return _Nodes(
        np.array(numbers, np.int64),
        np.array([kinds[number] == 1 for number in numbers], np.bool_),
        np.array([first[number] for number in numbers], np.int64),
    )


def _read_runs(view: KpiInputs) -> Ints:
    """Return (time of the end, failed) of every run that ended."""
    rows = [
        (state_at, int(state is not RunState.COMPLETE))
        for _, state, _, state_at in view.reader.history.run_outcomes()
        if state.terminal
    ]
    return np.array(rows, np.int64).reshape(-1, 2)


def _point(view: KpiInputs, nodes: _Nodes, ended: Ints, moment: int) -> KpiPoint:
    graph = view.graph.nodes
    seen = nodes.first_at <= moment
    edges = np.arange(len(graph.flow), dtype=np.int32)
    edges = edges[graph.flow.first_at.of(edges) <= moment]
    source = graph.identities.canonicals(graph.flow.ends.source[edges]).astype(np.int64)
    target = graph.identities.canonicals(graph.flow.ends.target[edges]).astype(np.int64)
    explicit = graph.explicit(edges, moment)
    onward = ~((graph.flow.kind[edges] == EdgeKind.WRITES) & explicit)
    joined = np.isin(nodes.number[seen], np.concatenate([source, target]))
    lately = ended[(ended[:, 0] <= moment) & (ended[:, 0] >= moment - DAYS * DAY)]
    return KpiPoint(
        at=render_time(moment),
        datasets=int((seen & ~nodes.is_job).sum()),
        jobs=int((seen & nodes.is_job).sum()),
        lineage_coverage=_percent(int(joined.sum()), int(seen.sum())),
        blast_radius=_median_reach(view, nodes, seen, source[onward], target[onward]),
        failure_rate=_percent(int(lately[:, 1].sum()), len(lately)),
    )


def _median_reach(
    view: KpiInputs, nodes: _Nodes, seen: Flags, source: Ints, target: Ints
) -> float | None:
    """Return the median number of datasets and jobs downstream of a dataset."""
    datasets = nodes.number[seen & ~nodes.is_job]
    if not len(datasets):
        return None
    size = view.graph.nodes.size
    of = view.graph.nodes.identities.canonicals(np.arange(size, dtype=np.int32))
    kind = np.zeros(size, np.int64)
    jobs = nodes.number[nodes.is_job]
    kind[jobs[jobs < size]] = 1
    counted = view.count_reached(size, source, target, of.astype(np.int64), kind)
    reach = np.zeros(max(size, int(datasets.max()) + 1), np.int64)
    reach[:size] = counted[0] + counted[1]
    return float(np.median(reach[datasets]))


def _percent(count: int, total: int) -> float | None:
    return round(100 * count / total, 1) if total else None
