"""What lineage means, spelled out slowly: plain dictionaries and sets over the events themselves.

Nothing is indexed and nothing is shared with the package. Every question is answered by going over
all there is, in the words in which the behaviour is promised.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, NamedTuple

from downriver.openlineage.wire import parse_time

NEVER = 10**30


class Name(NamedTuple):
    """A dataset or a job."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return ":".join(self)


class Derives(NamedTuple):
    """A column edge, as (dataset, field) ends."""

    source: tuple[Name, str]
    target: tuple[Name, str]
    rank: int
    subtype: str
    job: Name | None


class State(NamedTuple):
    """Where a walk through columns stands: a field of a dataset, or its `*`.

    At `*` it stands for the whole dataset, unless it carries a field that is not known there.
    """

    dataset: Name
    field: str
    carries: str | None = None

    @property
    def column(self) -> tuple[Name, str]:
        return self.dataset, self.field

    @property
    def whole(self) -> bool:
        return self.field == "*" and self.carries is None


class Step(NamedTuple):
    """One step of a walk through columns; without an edge, from `*` to a column inside."""

    near: State
    far: State
    edge: Derives | None


Edge = tuple[str, str, str, str | None, str | None]  # source, target, kind, job, how


class Answer(NamedTuple):
    """The part of a trace that has one right answer."""

    depths: dict[str, int]
    edges: set[Edge]
    omitted: int
    ranks: dict[str, int]


class Facts:
    """The lineage in a list of events."""

    def __init__(self, events: list[bytes]) -> None:
        self.reads: dict[tuple[Name, Name], int] = {}
        self.writes: dict[tuple[Name, Name], int] = {}
        self.derives: dict[tuple[Name, Name, Name | None], int] = {}
        self.explicit: dict[tuple[Name, Name], int] = {}
        self.symlinks: dict[Name, dict[int, set[Name]]] = defaultdict(lambda: defaultdict(set))
        self.renames: dict[tuple[Name, Name], int] = {}
        self.column_edges: dict[Derives, int] = {}
        self.columns: set[tuple[Name, str]] = set()
        self.nodes: set[Name] = set()
        for event in events:
            self._take(json.loads(event))

    def _take(self, event: Any) -> None:
        at = parse_time(event["eventTime"], "eventTime")
        self.inputs: set[Name] = set()
        if "dataset" in event:
            self._dataset(event["dataset"], at, None, set())
        if "job" not in event:
            return
        job = Name("job", event["job"]["namespace"], event["job"]["name"])
        self.nodes.add(job)
        spoken_for = set()
        for entry in event["job"]["facets"].get("lineage", {}).get("entries", ()):
            target = _named(entry)
            self._explicit(target, entry, job, at)
            spoken_for.add(target)
        for each in event["inputs"]:
            dataset = self._dataset(each, at, None, set())
            _earliest(self.reads, (dataset, job), at)
            links = each["facets"].get("symlinks", {}).get("identifiers", ())
            self.inputs |= {dataset, *map(_named, links)}
        for each in event["outputs"]:
            _earliest(self.writes, (job, self._dataset(each, at, job, spoken_for)), at)

    def _dataset(self, wire: Any, at: int, job: Name | None, spoken_for: set[Name]) -> Name:
        dataset, facets = _named(wire), wire["facets"]
        self.nodes.add(dataset)
        for field in facets.get("schema", {}).get("fields", ()):
            self.columns.add((dataset, field["name"]))
        if "symlinks" in facets:
            others = {_named(other) for other in facets["symlinks"]["identifiers"]}
            self.symlinks[dataset][at] |= others
            self.nodes |= others
        if "lifecycleStateChange" in facets:
            old = _named(facets["lifecycleStateChange"]["previousIdentifier"])
            self.nodes.add(old)
            self.renames[old, dataset] = max(at, self.renames.get((old, dataset), 0))
        if dataset in spoken_for:
            return dataset
        if "lineage" in facets:
            self._explicit(dataset, facets["lineage"], job, at)
        elif "columnLineage" in facets:
            self._column_lineage(dataset, facets["columnLineage"], job, at)
        return dataset

    def _explicit(self, target: Name, entry: Any, job: Name | None, at: int) -> None:
        self.nodes.add(target)
        for field, of_field in entry.get("fields", {}).items():
            for source in of_field["inputs"]:
                self._derive(source, (target, field), job, at)
        for source in entry.get("inputs", ()):
            if source.get("field"):
                self._derive(source, (target, "*"), job, at)
        if job is not None:
            _earliest(self.writes, (job, target), at)
            if "inputs" in entry or entry.get("fields"):
                _earliest(self.explicit, (job, target), at)
        by_field = [s for each in entry.get("fields", {}).values() for s in each["inputs"]]
        for source in [*entry.get("inputs", ()), *by_field]:
            self.nodes.add(_named(source))
            _earliest(self.derives, (_named(source), target, job), at)
            if job is not None:
                _earliest(self.reads, (_named(source), job), at)

    def _column_lineage(self, target: Name, facet: Any, job: Name | None, at: int) -> None:
        ends = [(s, field) for field, e in facet["fields"].items() for s in e["inputFields"]]
        for source, field in [*ends, *((source, "*") for source in facet.get("dataset", ()))]:
            self._derive(source, (target, field), job, at)
            self.nodes.add(_named(source))
            if job is None or (self.inputs and _named(source) not in self.inputs):
                _earliest(self.derives, (_named(source), target, job), at)
            else:
                _earliest(self.reads, (_named(source), job), at)

    def _derive(self, source: Any, target: tuple[Name, str], job: Name | None, at: int) -> None:
        origin = (_named(source), source["field"])
        self.columns |= {origin, target}
        for how in source["transformations"]:
            subtype = how["subtype"]
            rank = (
                3
                if how["type"] == "INDIRECT"
                else {"IDENTITY": 0, "AGGREGATION": 2}.get(subtype, 1)
            )
            _earliest(self.column_edges, Derives(origin, target, rank, subtype, job), at)


class Reference:
    """Answers to the questions a trace may be asked."""

    def __init__(self, events: list[bytes]) -> None:
        self.facts = Facts(events)
        self._speakers = {node: self._speaker(group) for node, group in self._groups().items()}
        self.columns = {(self.one(d), field) for d, field in self.facts.columns}

    # Names

    def _groups(self) -> dict[Name, frozenset[Name]]:
        groups = {node: frozenset([node]) for node in self.facts.nodes}
        for one, other in self._current_aliases() | set(self.facts.renames):
            together = groups[one] | groups[other]
            groups.update(dict.fromkeys(together, together))
        return groups

    def _current_aliases(self) -> set[tuple[Name, Name]]:
        return {
            (dataset, other)
            for dataset, facets in self.facts.symlinks.items()
            for other in facets[max(facets)]
            if other != dataset
        }

    def _speaker(self, group: frozenset[Name]) -> Name:
        """A name in use, then a logical name, then the one renamed to last."""
        logical = {other for _, other in self._current_aliases()}

        def precedence(name: Name) -> tuple[bool, bool, int, str]:
            renames = self.facts.renames.items()
            away = max((at for (old, _), at in renames if old == name), default=0)
            back = max((at for (_, new), at in renames if new == name), default=0)
            return away > back, name not in logical, -back, str(name)

        return min(group, key=precedence)

    def one(self, node: Name) -> Name:
        """The name that represents all names of a dataset."""
        return self._speakers[node]

    def has_present_names(self, as_of: int) -> bool:
        """Whether the names at a moment are those of now, which all answers here use."""
        symlinks = (at for facets in self.facts.symlinks.values() for at in facets)
        return all(at <= as_of for at in (*symlinks, *self.facts.renames.values()))

    # Datasets and jobs

    def trace(self, root: Name, *, downstream: bool, depth: int | None, as_of: int) -> Answer:
        reads, writes, derives, explicit = self._flow(as_of)
        implicit = {(job, d) for job, d in writes if (job, d) not in explicit}
        if downstream:
            to_job, from_job, opens = reads, implicit, reads
            across = {(s, t, job) for s, t, job in derives}
            root_edges = writes
        else:
            to_job = {(d, job) for job, d in writes}
            from_job = {(job, d) for d, job in reads}
            opens = {(d, job) for job, d in implicit}
            across = {(t, s, job) for s, t, job in derives}
            root_edges = from_job
        steps: dict[Name, set[Name]] = defaultdict(set)
        for near, job in opens:
            steps[near] |= {far for other, far in from_job if other == job}
        for near, far, _ in across:
            steps[near].add(far)
        root = self.one(root)
        steps[root] |= {far for job, far in root_edges if job == root}
        depths = _distances(root, steps)
        for near, job in to_job:
            if near in depths and job != root:
                depths[job] = min(depths[near] + 1, depths.get(job, NEVER))
        shown = {node: d for node, d in depths.items() if depth is None or d <= depth}
        opened = {job for near, job in opens if near in shown}
        kind = ("reads", "writes") if downstream else ("writes", "reads")
        found = {(near, job, kind[0], None) for near, job in to_job if near in shown}
        found |= {(job, far, kind[1], None) for job, far in from_job if job in opened}
        found |= {(job, far, kind[1], None) for job, far in root_edges if job == root}
        found |= {(near, far, "derives", job) for near, far, job in across if near in shown}
        edges = {
            (*_oriented(str(near), str(far), downstream), kind, str(job) if job else None, None)
            for near, far, kind, job in found
            if near in shown and far in shown
        }
        sign = 1 if downstream else -1
        return Answer(
            {str(node): sign * d for node, d in shown.items()},
            edges,
            sum(depth is not None and d == depth + 1 for d in depths.values()),
            {},
        )

    def _flow(self, as_of: int) -> Any:
        one = self.one
        return (
            {(one(d), job) for (d, job), at in self.facts.reads.items() if at <= as_of},
            {(job, one(d)) for (job, d), at in self.facts.writes.items() if at <= as_of},
            {(one(s), one(t), j) for (s, t, j), at in self.facts.derives.items() if at <= as_of},
            {(job, one(d)) for (job, d), at in self.facts.explicit.items() if at <= as_of},
        )

    # Columns

    def trace_column(
        self, root: tuple[Name, str], *, downstream: bool, depth: int | None, as_of: int
    ) -> Answer:
        start = State(self.one(root[0]), root[1])
        edges = self._column_edges(as_of)
        leads_on = {_oriented(edge.source, edge.target, downstream)[0] for edge in edges}
        depths: dict[State, int] = {}
        taken: set[Step] = set()
        level, arrived = 0, {start}
        while arrived:
            # A dataset reached as a whole is left through any of its columns that leads on.
            contained = {
                Step(state, State(dataset, field), None)
                for state in arrived
                for dataset, field in leads_on
                if state.whole and state.dataset == dataset and field != "*"
            }
            frontier = (arrived | {step.far for step in contained}) - depths.keys()
            depths.update(dict.fromkeys(frontier, level))
            onward = {
                Step(state, arrival, edge)
                for state in frontier
                for edge in edges
                if (arrival := self._arrival(state, edge, downstream)) is not None
            }
            taken |= contained | onward
            arrived = {step.far for step in onward} - depths.keys()
            level += 1
        return self._column_answer(start, depths, taken, depth, downstream)

    def _column_edges(self, as_of: int) -> list[Derives]:
        return [
            edge._replace(
                source=(self.one(edge.source[0]), edge.source[1]),
                target=(self.one(edge.target[0]), edge.target[1]),
            )
            for edge, at in self.facts.column_edges.items()
            if at <= as_of
        ]

    def _arrival(self, state: State, edge: Derives, downstream: bool) -> State | None:
        near, far = _oriented(edge.source, edge.target, downstream)
        field = state.carries or state.field
        if near[0] != state.dataset or near[1] not in ({"*"} if state.whole else {field, "*"}):
            return None
        copies = edge.rank == 0 and near[1] == far[1] == "*"
        if copies and not state.whole:
            known = (far[0], field) in self.columns
            return State(far[0], field) if known else State(far[0], "*", field)
        return State(*far)

    def _column_answer(
        self,
        start: State,
        depths: dict[State, int],
        taken: set[Step],
        depth: int | None,
        downstream: bool,
    ) -> Answer:
        shown = {state for state, d in depths.items() if depth is None or d <= depth}
        between = {step for step in taken if step.near in shown and step.far in shown}
        ranks = _compose(start, between)
        columns: dict[str, set[State]] = defaultdict(set)
        for state in shown:
            columns[_column(state)].add(state)
        sign = 1 if downstream else -1
        return Answer(
            {column: sign * min(depths[s] for s in at) for column, at in columns.items()},
            {_column_edge(step, downstream) for step in between},
            len(_one_step_beyond(depths, depth) - columns.keys()),
            {column: min(ranks.get(s, 3) for s in at) for column, at in columns.items()},
        )


def _named(wire: Any) -> Name:
    return Name("dataset", wire["namespace"], wire["name"])


def _earliest(seen: dict[Any, int], key: Any, at: int) -> None:
    seen[key] = min(at, seen.get(key, NEVER))


def _oriented(near: Any, far: Any, downstream: bool) -> tuple[Any, Any]:
    return (near, far) if downstream else (far, near)


def _column(state: State) -> str:
    return f"column:{state.dataset.namespace}:{state.dataset.name}:{state.field}"


def _one_step_beyond(depths: dict[State, int], depth: int | None) -> set[str]:
    """Return the columns where a walk ends: it does not look further than that."""
    return {_column(state) for state, d in depths.items() if depth is not None and d == depth + 1}


def _distances(root: Name, steps: dict[Name, set[Name]]) -> dict[Name, int]:
    depths, frontier, level = {root: 0}, {root}, 0
    while frontier:
        level += 1
        frontier = {far for near in frontier for far in steps.get(near, ())} - depths.keys()
        depths.update(dict.fromkeys(frontier, level))
    return depths


def _column_edge(step: Step, downstream: bool) -> Edge:
    ends = _oriented(_column(step.near), _column(step.far), downstream)
    if step.edge is None:
        return (*ends, "contains", None, None)
    how = f"{'INDIRECT' if step.edge.rank == 3 else 'DIRECT'} {step.edge.subtype}"
    return (*ends, "derives", str(step.edge.job) if step.edge.job else None, how)


def _compose(start: State, steps: set[Step]) -> dict[State, int]:
    """The rank of a path is that of its most indirect step; a column has that of its best path."""
    ranks = {start: 0}
    changed = True
    while changed:
        changed = False
        for near, far, edge in steps:
            rank = max(ranks.get(near, NEVER), edge.rank if edge else 0)
            if rank < ranks.get(far, NEVER):
                ranks[far] = rank
                changed = True
    return ranks
