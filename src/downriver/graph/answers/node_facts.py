"""Facts about many nodes at once: labels, columns, types, runs, neighbours.

Every function takes all nodes of an answer and asks the store once, because one query for each node
makes an answer of a thousand nodes slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.edges import FOREVER
from downriver.graph.index.sorted_keys import pairs
from downriver.graph.names.assets import dataset_type, job_type
from downriver.model.facts import EdgeKind, RunState
from downriver.model.governance import CERTIFIED_TAGS, PII_TAG
from downriver.model.ids import JobId
from downriver.model.trust.tag_changes import EntityLabels
from downriver.openlineage.facets.custom import ASSET, BLIND_SPOTS, parse_asset, parse_blind_spots
from downriver.openlineage.facets.dataset import (
    DATASET_TYPE,
    LIFECYCLE,
    SCHEMA,
    SchemaColumn,
    parse_lifecycle,
    schema_columns,
)
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    TAGS,
    Tags,
    parse_description,
    parse_owners,
    parse_tags,
)
from downriver.openlineage.facets.job import JOB_TYPE, JobTypeFacet, parse_job_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from downriver.graph.answers.view import Question
    from downriver.graph.index.node_graph import NodeGraph
    from downriver.graph.index.vectors import Ints, Longs
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader, Run

    EdgesOf: TypeAlias = Callable[[Ints], tuple[Ints, Longs]]

_DAY = 86_400_000_000
_FACETS = (
    ASSET, BLIND_SPOTS, DATASET_TYPE, DOCUMENTATION, JOB_TYPE, LIFECYCLE, OWNERSHIP, SCHEMA, TAGS,
)  # fmt: skip
_TYPE_FACETS = (ASSET, DATASET_TYPE, JOB_TYPE)
_FAILED = frozenset({RunState.FAIL, RunState.ABORT})
_MARKED_TAGS = {**dict.fromkeys(CERTIFIED_TAGS, "certified"), PII_TAG: PII_TAG}


def mark_tags(tags: Iterable[str]) -> list[str]:
    """Return the marks that pictures and screens show for tags: `certified` and `pii`."""
    marks = {_MARKED_TAGS.get(tag.partition(":")[0]) for tag in tags}
    return [mark for mark in ("certified", "pii") if mark in marks]


class NodeRun(NamedTuple):
    """The last run of a job."""

    job: int
    run: Run


class NodeFacts(NamedTuple):
    """The facts about one node under all its names."""

    type: str
    integration: str
    description: str
    owners: tuple[str, ...]
    tags: Tags
    columns: list[SchemaColumn]
    dropped: bool
    blind_spot_count: int
    last_run: NodeRun | None  # for a dataset: those of the jobs that write it
    failed: bool  # the last run of the job, or of a job that writes the dataset, failed


class NodeFactsReader:
    """Reads facts of many nodes at one moment."""

    def __init__(self, index: GraphSnapshot, reader: CatalogReader, as_of: int = FOREVER) -> None:
        self._graph = index.nodes
        self._reader = reader
        self._as_of = as_of
        self._until = None if as_of == FOREVER else as_of

    def read(self, nodes: Mapping[int, NodeId]) -> dict[int, NodeFacts]:
        """Return the facts of nodes. `nodes` maps canonical numbers to displayed ids."""
        numbers = np.fromiter(nodes, np.int32, len(nodes))
        names, at = self._graph.identities.every_name(numbers)
        groups: dict[int, list[int]] = {node: [] for node in nodes}
        for name, place in zip(names.tolist(), at.tolist(), strict=True):
            groups[int(numbers[place])].append(name)
        writers = self._writers(numbers)
        jobs = {node for node, name in nodes.items() if isinstance(name, JobId)}
        jobs.update(job for listed in writers.values() for job in listed)
        facets = self._reader.facets.of_each({*names.tolist(), *jobs}, _FACETS, self._until)
        latest = self._reader.runs.latest_of_each(jobs, 1, self._until)
        runs = {job: listed[0] for job, listed in latest.items()}
        unnamed = [
            name
            for group in groups.values()
            if not any(SCHEMA in facets.get(name, {}) for name in group)
            for name in group
        ]
        fields = self._reader.columns.names_of_each(unnamed)
        ranks = self._ranks(nodes, groups, writers)
        return {
            node: self._facts(
                name,
                _merged(facets.get(member, {}) for member in _ordered(groups[node], ranks)),
                {
                    job: facets.get(job, {})
                    for job in ((node,) if node in jobs else _ordered(writers.get(node, []), ranks))
                },
                runs,
                [field for member in groups[node] for field in fields.get(member, ())],
            )
            for node, name in nodes.items()
        }

    def _ranks(
        self,
        nodes: Mapping[int, NodeId],
        groups: Mapping[int, list[int]],
        writers: Mapping[int, list[int]],
    ) -> dict[int, tuple[bool, str]]:
        """Return a sort key for the names of a node and the writers of a dataset.

        Ids cannot be the key, because they depend on the order of arrival. The displayed name is
        last.
        """
        several = [names for names in (*groups.values(), *writers.values()) if len(names) > 1]
        shown = set(map(str, nodes.values()))
        names = self._reader.nodes.by_ids({name for listed in several for name in listed})
        return {number: (str(name) in shown, str(name)) for number, name in names.items()}

    def types(self, nodes: Mapping[int, NodeId]) -> dict[int, str]:
        """Return the asset types of nodes. `nodes` maps canonical numbers to displayed ids."""
        numbers = np.fromiter(nodes, np.int32, len(nodes))
        writers = self._writers(numbers)
        jobs = {job for listed in writers.values() for job in listed}
        facets = self._reader.facets.of_each({*nodes, *jobs}, _TYPE_FACETS, self._until)
        kinds = {node: parse_job_type(of.get(JOB_TYPE)) for node, of in facets.items()}
        unknown = JobTypeFacet()
        return {
            node: _type_of(
                name,
                facets.get(node, {}),
                [
                    kinds.get(job, unknown)
                    for job in ((node,) if isinstance(name, JobId) else writers.get(node, ()))
                ],
            )
            for node, name in nodes.items()
        }

    def find_failed(self, jobs: Iterable[int]) -> set[int]:
        """Return the jobs whose last run failed."""
        latest = self._reader.runs.latest_of_each(jobs, 1, self._until)
        return {job for job, (run,) in latest.items() if run.state in _FAILED}

    def _writers(self, nodes: Ints) -> dict[int, list[int]]:
        """Return the jobs that write each dataset under any of its names."""
        flow = self._graph.flow
        names, of_node = self._graph.identities.every_name(nodes)
        edges, of_name = flow.ends.entering.of_each(names)
        writes = flow.kind[edges] == EdgeKind.WRITES
        if self._until is not None:
            writes &= flow.first_at.of(edges) <= self._as_of
        writers: dict[int, list[int]] = {}
        ends = zip(
            nodes[of_node[of_name[writes]]].tolist(),
            flow.ends.source[edges[writes]].tolist(),
            strict=True,
        )
        for dataset, job in sorted(set(ends)):
            writers.setdefault(dataset, []).append(job)
        return writers

    def _facts(
        self,
        node: NodeId,
        facets: Mapping[str, bytes],
        jobs: Mapping[int, Mapping[str, bytes]],
        runs: Mapping[int, Run],
        fields: list[str],
    ) -> NodeFacts:
        kinds = [parse_job_type(of.get(JOB_TYPE)) for of in jobs.values()]
        last = [NodeRun(job, runs[job]) for job in jobs if job in runs]
        own = parse_job_type(facets.get(JOB_TYPE))
        schema = facets.get(SCHEMA)
        return NodeFacts(
            type=_type_of(node, facets, kinds),
            integration=(own if isinstance(node, JobId) else JobTypeFacet()).integration.lower(),
            description=parse_description(facets.get(DOCUMENTATION)),
            owners=parse_owners(facets.get(OWNERSHIP)),
            tags=parse_tags(facets.get(TAGS)),
            columns=_unknown_types(fields) if schema is None else schema_columns(schema),
            dropped=parse_lifecycle(facets.get(LIFECYCLE)).upper() == "DROP",
            blind_spot_count=len(parse_blind_spots(facets.get(BLIND_SPOTS, b"{}"))),
            last_run=max(last, key=lambda seen: seen.run.first_at, default=None),
            failed=any(seen.run.state in _FAILED for seen in last),
        )


def _type_of(node: NodeId, facets: Mapping[str, bytes], jobs: list[JobTypeFacet]) -> str:
    if ASSET in facets:
        return parse_asset(facets[ASSET]).assetType
    if isinstance(node, JobId):
        return job_type(jobs[0])
    return dataset_type(node, jobs, facets.get(DATASET_TYPE))


def _ordered(numbers: list[int], ranks: Mapping[int, tuple[bool, str]]) -> list[int]:
    return sorted(numbers, key=ranks.__getitem__) if len(numbers) > 1 else numbers


def _merged(facets: Iterable[Mapping[str, bytes]]) -> dict[str, bytes]:
    merged: dict[str, bytes] = {}
    for some in facets:
        merged.update(some)
    return merged


def _unknown_types(fields: list[str]) -> list[SchemaColumn]:
    """Return the columns of a dataset without a schema, as column lineage names them."""
    return [SchemaColumn(field, "", "") for field in sorted(set(fields))]


class NeighbourCounts(NamedTuple):
    """How many nodes each of several nodes is connected with, in each direction."""

    upstream: list[int]
    downstream: list[int]


def count_neighbours(graph: NodeGraph, nodes: Ints, as_of: int = FOREVER) -> NeighbourCounts:
    """Count the direct neighbours of canonical nodes. Each neighbour counts once."""
    ends = graph.flow.ends
    upstream = _distinct_ends(graph, nodes, ends.entering.of_each, ends.source.values, as_of)
    downstream = _distinct_ends(graph, nodes, ends.leaving.of_each, ends.target.values, as_of)
    return NeighbourCounts(upstream, downstream)


def _distinct_ends(
    graph: NodeGraph, nodes: Ints, edges_of: EdgesOf, far: Ints, as_of: int
) -> list[int]:
    names, of_node = graph.identities.every_name(nodes)
    edges, of_name = edges_of(names)
    places = of_node[of_name]
    if as_of != FOREVER:
        seen = graph.flow.first_at.of(edges) <= as_of
        edges, places = edges[seen], places[seen]
    others = graph.identities.canonicals(far[edges])
    apart = others != nodes[places]
    distinct = np.unique(pairs(places[apart], others[apart]))
    counts: list[int] = np.bincount(distinct >> 32, minlength=len(nodes)).tolist()
    return counts


def find_stale(graph: NodeGraph, nodes: Ints, question: Question) -> set[int]:
    """Return the nodes that have only stale edges: later runs did not confirm them."""
    names, of_node = graph.identities.every_name(nodes)
    ends = graph.flow.ends
    parts = [rows.of_each(names) for rows in (ends.entering, ends.leaving)]
    edges = np.concatenate([part[0] for part in parts])
    places = of_node[np.concatenate([part[1] for part in parts])]
    if question.as_of != FOREVER:
        was_seen = graph.flow.first_at.of(edges) <= question.as_of
        edges, places = edges[was_seen], places[was_seen]
    seen = np.minimum(graph.jobs_last_seen(graph.jobs(edges)), question.as_of)
    stale = seen - graph.flow.last_at.of(edges) > question.stale_days * _DAY
    active = np.bincount(places[~stale], minlength=len(nodes))
    every = np.bincount(places, minlength=len(nodes))
    stale_nodes: list[int] = nodes[(every > 0) & (active == 0)].tolist()
    return set(stale_nodes)


_LABELS = (OWNERSHIP, DOCUMENTATION, TAGS)


def labels_of(reader: CatalogReader, names: list[int]) -> EntityLabels:
    """Return the labels of a node, given all its names."""
    return _labels(reader, reader.facets.of_each(names, _LABELS))


def sent_labels(reader: CatalogReader, names: list[int]) -> EntityLabels | None:
    """Return the labels in events of a node, given all its names, if a person set others."""
    if not reader.facets.stated(names):
        return None
    sent = _labels(reader, reader.facets.sent(names, _LABELS))
    return None if sent == labels_of(reader, names) else sent


def _labels(reader: CatalogReader, facets: Mapping[int, Mapping[str, bytes]]) -> EntityLabels:
    ids = reader.nodes.by_ids(facets)
    bodies = [facets[name] for name in sorted(facets, key=lambda number: str(ids[number]))]
    owners = dict.fromkeys(owner for of in bodies for owner in parse_owners(of.get(OWNERSHIP)))
    texts = (parse_description(of.get(DOCUMENTATION)) for of in bodies)
    return EntityLabels(
        owners=list(owners),
        tags=sorted({tag for of in bodies for tag in parse_tags(of.get(TAGS)).whole}),
        description=next(filter(None, texts), ""),
    )
