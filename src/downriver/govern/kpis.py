"""KPIs: the shares of data that are known, owned, documented and on time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.govern.drift.runs import next_due
from downriver.govern.drift.series import DAY, LatenessLimits
from downriver.govern.tags import certified_paths, propagating_tags, reach_of_tag
from downriver.govern.verdict_history import measure_change_radius
from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.job_roles import (
    STATEMENT_NAMES,
    find_checks,
    find_loaders,
    find_readers,
    find_tasks,
)
from downriver.graph.index.edges import FOREVER
from downriver.model.facts import EdgeKind, RunState
from downriver.model.governance import (
    PII_TAG,
    BlastRadius,
    CountWithExamples,
    DatasetBlastRadius,
    JobFailures,
    Kpis,
    PropagatingTag,
    ReachBucket,
    Share,
)
from downriver.openlineage.facets.dataset import SCHEMA
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    parse_description,
    parse_owners,
)
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Collection

    from downriver.govern.entity_context import EntityContext
    from downriver.graph import GraphSnapshot
    from downriver.store import CatalogReader

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
# Arguments: the number of nodes, the edges (from, to), the number of each node in the graph, and
# whether it is a job (1). Result: the numbers of other datasets and of jobs that each node reaches.
CountReached = Callable[[int, Ints, Ints, Ints, Ints], tuple[Ints, Ints]]

DAYS = 30
VERDICT_DAYS = 90  # changes are rarer than runs
EXAMPLES = 10
_TOP = 10
_RUNS_REMEMBERED = 100


class KpiInputs(NamedTuple):
    """The inputs of the KPIs."""

    graph: GraphSnapshot
    reader: CatalogReader
    around: EntityContext
    count_reached: CountReached
    stale_days: int
    now: int
    examples: int = EXAMPLES  # of each list


def measure_kpis(view: KpiInputs) -> Kpis:
    """Return the KPIs of the whole graph."""
    flow = _Flow(view)
    loaders = find_loaders(view.reader, np.array(sorted(flow.unfed_jobs), np.int32))
    names = _Names(view)
    runs = _Runs(view)
    counts = view.reader.counts()
    certified = certified_paths(view.graph, view.reader, view.around)
    cuts = CutDetector(view.graph, view.reader).every_cut().cuts
    pii = reach_of_tag(view.graph, view.reader, PII_TAG, view.around, view.stale_days)
    fed = flow.fed | flow.written_by(loaders)
    with_schema = names.having(SCHEMA)
    owned = names.having(OWNERSHIP, lambda body: bool(parse_owners(body)))
    described = names.having(DOCUMENTATION, lambda body: bool(parse_description(body).strip()))
    columns = _ColumnSources(view, flow)
    return Kpis(
        at=render_time(view.now),
        datasets=len(names.datasets),
        jobs=len(names.jobs),
        columns=counts.columns,
        lineage_coverage=Share.of(len(flow.joined & names.all), len(names.all)),
        without_edges=names.listed(names.all - flow.joined),
        upstream_coverage=Share.of(len(fed), len(flow.written)),
        without_source=names.listed(flow.written - fed),
        column_coverage=columns.coverage,
        columns_without_source=columns.without_source(names),
        schema_coverage=Share.of(len(with_schema), len(names.datasets)),
        without_schema=names.listed(names.datasets - with_schema),
        owner_coverage=Share.of(len(owned), len(names.datasets)),
        without_owner=names.listed(names.datasets - owned),
        documentation_coverage=Share.of(len(described), len(names.datasets)),
        without_description=names.listed(names.datasets - described),
        orphans=names.listed(names.datasets - flow.joined),
        unknown_downstreams=names.listed(_unknown_downstreams(view, flow) & names.datasets),
        jobs_without_inputs=names.listed((flow.unfed_jobs - loaders) & names.jobs),
        possible_cuts=names.some([cut.read for cut in cuts]),
        stale_edges=flow.stale,
        blast_radius=_blast_radius(view, flow, names),
        change_radius=measure_change_radius(view.reader, view.now, VERDICT_DAYS),
        certified=names.some([path.dataset for path in certified.datasets]),
        certified_path_integrity=certified.integrity,
        certified_with_gaps=names.some(
            [path.dataset for path in certified.datasets if not path.intact]
        ),
        pii_columns=names.some(pii.tagged),
        pii_reach=names.some([column.column for column in pii.reached]),
        propagating_tags=_propagating(view, names),
        failure_rate=runs.failure_rate,
        failing_jobs=names.listed(runs.failing),
        worst_jobs=runs.worst(names),
        on_time=Share.of(len(runs.rhythmic) - len(runs.late), len(runs.rhythmic)),
        late_jobs=names.listed(runs.late),
        days=DAYS,
    )


class _Names:
    """All datasets and jobs; a dataset with several names, or a job of statements, counts once."""

    def __init__(self, view: KpiInputs) -> None:
        self._view = view
        identities = view.graph.nodes.identities
        history = view.reader.history
        retired = view.graph.retired
        self.datasets = {
            identities.canonical(node) for node in history.nodes_of_kind(0) if node not in retired
        }
        named = view.reader.nodes.matching("name", STATEMENT_NAMES)
        self.tasks = find_tasks(named, view.reader)  # by job that reports a statement of one
        self.jobs = set(history.nodes_of_kind(1)) - retired - self.tasks.keys()
        self.all = self.datasets | self.jobs

    def having(
        self, facet: str, is_counted: Callable[[bytes], bool] = lambda body: True
    ) -> set[int]:
        """Return the datasets with a facet that is not empty."""
        identities = self._view.graph.nodes.identities
        bodies = self._view.reader.facets.named(facet)
        found = {identities.canonical(node) for node, body in bodies.items() if is_counted(body)}
        return found & self.datasets

    def listed(self, nodes: Collection[int]) -> CountWithExamples:
        """Return the number of these nodes, and the first of them by name."""
        return self.some(list(self.ids(nodes).values()))

    def some(self, ids: Collection[str]) -> CountWithExamples:
        """Return the number of these ids, and the first of them."""
        return CountWithExamples(count=len(ids), examples=sorted(ids)[: self._view.examples])

    def ids(self, nodes: Iterable[int]) -> dict[int, str]:
        """Return the ids of nodes in answers."""
        display_names = self._view.graph.nodes.identities.display_names(nodes, self._view.reader)
        return {node: str(name.id) for node, name in display_names.items()}


class _Flow:
    """The edges of the whole graph between canonical nodes."""

    def __init__(self, view: KpiInputs) -> None:
        nodes = view.graph.nodes
        edges = np.arange(len(nodes.flow), dtype=np.int32)
        self.kind = nodes.flow.kind.values.astype(np.int64)
        self.source = nodes.identities.canonicals(nodes.flow.ends.source.values).astype(np.int64)
        self.target = nodes.identities.canonicals(nodes.flow.ends.target.values).astype(np.int64)
        self.explicit = nodes.explicit(edges, FOREVER)
        self.jobs = nodes.jobs(edges)
        self.last_at = nodes.flow.last_at.values
        self._seen = nodes.jobs_last_seen(self.jobs)
        self._stale_days = view.stale_days

    def _of(self, kind: EdgeKind) -> Flags:
        flags: Flags = self.kind == int(kind)
        return flags

    @property
    def joined(self) -> set[int]:
        """Both ends of all edges."""
        return {*self.source.tolist(), *self.target.tolist()}

    @property
    def written(self) -> set[int]:
        """Datasets that a job writes or that derive from others."""
        into = self._of(EdgeKind.WRITES) | self._of(EdgeKind.DERIVES)
        return set(self.target[into].tolist())

    @property
    def fed(self) -> set[int]:
        """Written datasets with at least one known source."""
        readers = np.unique(self.target[self._of(EdgeKind.READS)])
        fed = self._of(EdgeKind.WRITES) & ~self.explicit & np.isin(self.source, readers)
        return set(self.target[fed | self._of(EdgeKind.DERIVES)].tolist())

    def written_by(self, jobs: Collection[int]) -> set[int]:
        """Return the datasets that these jobs write."""
        writes = self._of(EdgeKind.WRITES) & np.isin(self.source, list(jobs))
        return set(self.target[writes].tolist())

    @property
    def unknown_uses(self) -> tuple[Ints, Ints]:
        """The datasets that jobs without an output read, and those jobs."""
        writers = np.unique(self.source[self._of(EdgeKind.WRITES)])
        ends = self._of(EdgeKind.READS) & ~np.isin(self.target, writers)
        return self.source[ends], self.target[ends]

    @property
    def unfed_jobs(self) -> set[int]:
        """Jobs that write datasets and have neither inputs nor explicit sources."""
        readers = self.target[self._of(EdgeKind.READS)]
        unfed = self._of(EdgeKind.WRITES) & ~self.explicit & ~np.isin(self.source, readers)
        return set(self.source[unfed].tolist())

    @property
    def stale(self) -> Share:
        """Edges that were absent from the recent runs of their job."""
        stale = self._seen - self.last_at > self._stale_days * DAY
        return Share.of(int(stale.sum()), len(self.kind))

    def counted(self, view: KpiInputs, names: _Names) -> tuple[Ints, Ints]:
        """Return how many datasets and jobs lie downstream of each node."""
        size = view.graph.nodes.size
        onward = ~(self._of(EdgeKind.WRITES) & self.explicit)
        of = view.graph.nodes.identities.canonicals(np.arange(size, dtype=np.int32))
        kind = np.zeros(size, np.int64)
        kind[[job for job in names.jobs | names.tasks.keys() if job < size]] = 1
        for statement, task in names.tasks.items():
            if max(statement, task) < size:
                of[statement] = task
        source, target = self.source[onward], self.target[onward]
        return view.count_reached(size, source, target, of.astype(np.int64), kind)


def _propagating(view: KpiInputs, names: _Names) -> list[PropagatingTag]:
    found = []
    for tag in sorted(propagating_tags(view.reader) - {PII_TAG}):
        reach = reach_of_tag(view.graph, view.reader, tag, view.around, view.stale_days)
        reached = names.some([column.column for column in reach.reached])
        found.append(PropagatingTag(tag=tag, columns=names.some(reach.tagged), reached=reached))
    return found


def _unknown_downstreams(view: KpiInputs, flow: _Flow) -> set[int]:
    """Return the datasets that are read by a job without an output.

    Readers such as Spark's `collect`, and checks such as a dbt test, have no downstream, so it is
    not unknown.
    """
    datasets, jobs = flow.unknown_uses
    distinct = np.unique(jobs).astype(np.int32)
    ends = find_readers(view.graph.nodes, view.reader, distinct) | find_checks(
        view.reader, distinct
    )
    return set(datasets[~np.isin(jobs, list(ends))].tolist())


class _ColumnSources:
    """The columns of the datasets that are written, and whether their source is known."""

    def __init__(self, view: KpiInputs, flow: _Flow) -> None:
        columns = view.graph.columns
        self._view = view
        self._owner = view.graph.nodes.identities.canonicals(columns.dataset.values)
        named = (columns.field.values != 0) & (columns.dataset.values > 0)
        self._inside = np.isin(self._owner, np.array(sorted(flow.written), np.int64)) & named
        known = np.zeros(columns.size, np.bool_)
        known[columns.flow.target.values] = True
        # An edge into `*` counts for every column of its dataset.
        stars = known & (columns.field.values == 0)
        self._known = known | np.isin(self._owner, self._owner[stars])

    @property
    def coverage(self) -> Share:
        """The share of the columns with a known source."""
        return Share.of(int((self._inside & self._known).sum()), int(self._inside.sum()))

    def without_source(self, names: _Names) -> CountWithExamples:
        """Return the columns without a known source. Only the names of the first are loaded."""
        missing = np.flatnonzero(self._inside & ~self._known)
        owners = self._owner[missing]
        called = names.ids(np.unique(owners).tolist())
        shown: list[str] = []
        for dataset in sorted(called, key=lambda node: called[node]):
            places = self._view.graph.columns.places(missing[owners == dataset].tolist())
            found = self._view.reader.columns.by_ids(places).values()
            shown += sorted({f"{called[dataset]}.{field}" for _, field in found})
            if len(shown) >= self._view.examples:
                break
        return CountWithExamples(count=len(missing), examples=shown[: self._view.examples])


def _blast_radius(view: KpiInputs, flow: _Flow, names: _Names) -> BlastRadius:
    datasets, jobs = flow.counted(view, names)
    inside = [node for node in sorted(names.datasets) if node < len(datasets)]
    reach = {node: int(datasets[node] + jobs[node]) for node in inside}
    alone = len(names.datasets) - len(inside)  # no edge names them
    furthest = sorted((n for n in inside if reach[n]), key=lambda n: -reach[n])
    # Nodes with equal counts are sorted by name, so load the names of all candidates.
    least = reach[furthest[:_TOP][-1]] if furthest else 0
    called = names.ids(n for n in furthest if reach[n] >= least)
    furthest = sorted(called, key=lambda n: (-reach[n], called[n]))[:_TOP]
    return BlastRadius(
        median=float(np.median([*reach.values(), *[0] * alone])) if names.datasets else 0.0,
        largest=max(reach.values(), default=0),
        distribution=_distribution([*reach.values(), *[0] * alone]),
        top=[
            DatasetBlastRadius(
                dataset=called[node],
                downstream=reach[node],
                datasets=int(datasets[node]),
                jobs=int(jobs[node]),
                owners=view.around.owners(node),
            )
            for node in furthest
        ],
    )


def _distribution(reach: list[int]) -> list[ReachBucket]:
    """Count datasets in buckets that double: 0, 1, 2 to 3, 4 to 7 and so on."""
    counts = Counter(value.bit_length() for value in reach)
    return [
        ReachBucket(least=1 << bits >> 1, most=(1 << bits) - 1, datasets=counts[bits])
        for bits in range(max(counts, default=-1) + 1)
    ]


class _Runs:
    """The last runs of jobs."""

    def __init__(self, view: KpiInputs) -> None:
        since = view.now - DAYS * DAY
        self.ended: defaultdict[int, int] = defaultdict(int)
        self.failed: defaultdict[int, int] = defaultdict(int)
        starts: defaultdict[int, list[int]] = defaultdict(list)
        last: dict[int, tuple[int, RunState]] = {}
        for job, state, first_at, state_at in view.reader.history.run_outcomes():
            starts[job].append(first_at)
            if state.terminal:
                last[job] = max(last.get(job, (0, state)), (state_at, state))
                if state_at >= since:
                    self.ended[job] += 1
                    self.failed[job] += state is not RunState.COMPLETE
        self.failing = {job for job, (_, state) in last.items() if state is not RunState.COMPLETE}
        self.rhythmic, self.late = _lateness(starts, view.now)

    @property
    def failure_rate(self) -> Share:
        """The share of failed runs among those that ended."""
        return Share.of(sum(self.failed.values()), sum(self.ended.values()))

    def worst(self, names: _Names) -> list[JobFailures]:
        """Return the jobs that failed most often, by share and then by number."""
        bad = [job for job, failed in self.failed.items() if failed]
        bad.sort(key=lambda job: (-self.failed[job] / self.ended[job], -self.failed[job], job))
        called = names.ids(bad[:_TOP])
        return [
            JobFailures(
                job=called[job],
                failed=self.failed[job],
                ended=self.ended[job],
                percent=round(100 * self.failed[job] / self.ended[job], 1),
            )
            for job in bad[:_TOP]
        ]


def _lateness(starts: dict[int, list[int]], now: int) -> tuple[set[int], set[int]]:
    """Return the jobs that have a rhythm and still run, and those of them that are late."""
    limits = LatenessLimits()
    rhythmic: set[int] = set()
    late: set[int] = set()
    for job, began in starts.items():
        if now - began[-1] > limits.give_up_days * DAY:
            continue
        due = next_due(began[-_RUNS_REMEMBERED:], limits)
        if due is not None:
            rhythmic.add(job)
            if now > due.at + due.tolerance:
                late.add(job)
    return rhythmic, late
