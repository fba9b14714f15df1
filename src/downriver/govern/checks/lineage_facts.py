"""The datasets, jobs, edges and labels that the rules check, read once for all of them."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver import settings
from downriver.govern.contracts.observations import (
    DatasetObservations,
    find_contracts,
    observe_schemas,
)
from downriver.govern.tags import (
    find_tagged,
    propagating_tags,
    spread_over,
    trace_downstream,
)
from downriver.graph.answers.job_roles import find_checks, find_loaders
from downriver.graph.index.column_graph import STAR
from downriver.graph.index.edges import FOREVER
from downriver.graph.names.resolution import find_entity
from downriver.model.facts import EdgeKind
from downriver.model.governance import CERTIFIED_TAGS
from downriver.model.ids import EVERY_FIELD, ColumnId, short_name
from downriver.openlineage.facets.custom import CODE, parse_code
from downriver.openlineage.facets.description import OWNERSHIP, TAGS, parse_owners, parse_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph import GraphSnapshot
    from downriver.model.ids import NodeId
    from downriver.model.trust.contracts import DataContract
    from downriver.store import CatalogReader

Links = dict[int, set[int]]
_TRUTHS = frozenset({"canonical", "golden"})
_CONCEPT = "concept:"


class ColumnSource(NamedTuple):
    """A column from which another derives, and how; see `column_graph`."""

    source: int
    rank: int


class CodePlace(NamedTuple):
    """A line in a file of a repository."""

    path: str
    line: int


class ReachedTag(NamedTuple):
    """A propagating tag reaches a column from a column of another dataset."""

    dataset: int
    field: str
    tag: str
    origin: int


class LineageFacts:
    """The whole graph at the level of datasets and jobs. The names of one dataset are one node."""

    def __init__(self, graph: GraphSnapshot, reader: CatalogReader) -> None:
        self.graph = graph
        self.reader = reader
        self._identities = graph.nodes.identities
        retired = graph.retired
        self.datasets = {
            self._identities.canonical(node)
            for node in reader.history.nodes_of_kind(0)
            if node not in retired
        }
        self.jobs = set(reader.history.nodes_of_kind(1)) - retired
        self.readers: Links = defaultdict(set)  # dataset -> jobs
        self.writers: Links = defaultdict(set)  # dataset -> jobs
        self.inputs: Links = defaultdict(set)  # job -> datasets
        self.outputs: Links = defaultdict(set)  # job -> datasets
        self.sources: Links = defaultdict(set)  # dataset -> datasets it derives from
        self._explicit: set[int] = set()  # jobs that state the sources of each output
        self.joined: set[int] = set()  # both ends of all edges
        self._read_edges()
        self._names: dict[int, NodeId] = {}

    def _read_edges(self) -> None:
        nodes = self.graph.nodes
        edges = np.arange(len(nodes.flow), dtype=np.int32)
        ends = nodes.flow.ends
        source = self._identities.canonicals(ends.source.values).tolist()
        target = self._identities.canonicals(ends.target.values).tolist()
        explicit = nodes.explicit(edges, FOREVER).tolist()
        self.joined = {*source, *target}
        written: list[tuple[int, int]] = []
        for kind, one, other, is_explicit in zip(
            nodes.flow.kind.values.tolist(), source, target, explicit, strict=True
        ):
            match EdgeKind(kind):
                case EdgeKind.READS:
                    self.readers[one].add(other)
                    self.inputs[other].add(one)
                case EdgeKind.WRITES:
                    self.writers[other].add(one)
                    self.outputs[one].add(other)
                    if is_explicit:
                        self._explicit.add(one)
                    else:
                        written.append((one, other))
                case _:
                    self.sources[other].add(one)
        for job, dataset in written:
            self.sources[dataset] |= self.inputs[job] - {dataset}

    @cached_property
    def loaders(self) -> set[int]:
        """Jobs that load a file of their own code, such as dbt seeds: their inputs are known."""
        return find_loaders(self.reader, np.array(sorted(self.outputs), np.int32))

    @cached_property
    def tests(self) -> set[int]:
        """Jobs that check data, such as dbt tests."""
        readers = {job for jobs in self.readers.values() for job in jobs}
        return find_checks(self.reader, np.array(sorted(readers), np.int32))

    @cached_property
    def unfed_jobs(self) -> set[int]:
        """Jobs that write datasets and have no known input."""
        writing = {job for job, written in self.outputs.items() if written}
        return {job for job in writing if not self.inputs[job]} - self.loaders - self._explicit

    @cached_property
    def origins(self) -> set[int]:
        """Datasets where data enters: no job writes them, or a loader does."""
        derived = {dataset for dataset, sources in self.sources.items() if sources}
        return {
            dataset
            for dataset in self.datasets - derived
            if not self.writers[dataset] or self.writers[dataset] & self.loaders
        }

    def upstream(self, dataset: int, stop: Iterable[int] = ()) -> set[int]:
        """Return every dataset upstream. The walk ends at the datasets in `stop`."""
        ends, seen, waiting = set(stop), {dataset}, [dataset]
        while waiting:
            for source in self.sources[waiting.pop()] - seen:
                seen.add(source)
                if source not in ends:
                    waiting.append(source)
        return seen - {dataset}

    # Labels

    def name(self, node: int) -> str:
        """Return the id of a node as answers show it."""
        return self.names([node])[0]

    def names(self, nodes: Iterable[int]) -> list[str]:
        """Return the ids of nodes as answers show them, in alphabetical order."""
        asked = list(nodes)
        missing = [node for node in asked if node not in self._names]
        for node, display_name in self._identities.display_names(missing, self.reader).items():
            self._names[node] = display_name.id
        return sorted(str(self._names[node]) for node in asked)

    @cached_property
    def owned(self) -> dict[int, list[str]]:
        """The owners of every dataset and job that has any."""
        found: dict[int, list[str]] = {}
        for node, body in self.reader.facets.named(OWNERSHIP).items():
            if owners := parse_owners(body):
                found.setdefault(self._identities.canonical(node), []).extend(owners)
        return found

    def owners(self, node: int) -> list[str]:
        """Return the owners of a node; without any, the owners of the jobs that write it."""
        jobs = sorted(self.writers[node]) if node in self.writers else []
        own = self.owned.get(node) or [o for job in jobs for o in self.owned.get(job, ())]
        return list(dict.fromkeys(own))

    @cached_property
    def certified(self) -> set[int]:
        """The datasets with a tag that marks a source of truth."""
        return {
            self._identities.canonical(node)
            for node, body in self.reader.facets.named(TAGS).items()
            if parse_tags(body).whole & set(CERTIFIED_TAGS)
        } & self.datasets

    @cached_property
    def canonical(self) -> dict[str, set[int]]:
        """The datasets that are the source of truth of each concept.

        The concept is the tag `concept:NAME`, else the last part of the name.
        """
        found: dict[str, set[int]] = defaultdict(set)
        for node, body in self.reader.facets.named(TAGS).items():
            tags = parse_tags(body).whole
            dataset = self._identities.canonical(node)
            if not tags & _TRUTHS or dataset not in self.datasets:
                continue
            concepts = {tag.partition(":")[2] for tag in tags if tag.startswith(_CONCEPT)}
            for concept in concepts or {short_name(self.name(dataset).rpartition(":")[2])}:
                found[concept].add(dataset)
        return found

    @cached_property
    def contracts(self) -> dict[int, DataContract]:
        """The contracts of datasets."""
        return find_contracts(self.graph, self.reader)

    def observations(self, dataset: int) -> DatasetObservations:
        """Return the schemas of a dataset, for the clauses of a contract about them."""
        names = self._identities.group(dataset)
        schemas = observe_schemas(self.reader, names, FOREVER)
        return DatasetObservations(schemas, None, {}, None, FOREVER)

    # Columns

    def columns(self, dataset: int) -> dict[int, str]:
        """Return the columns of a dataset under all its names, `*` left out."""
        columns = self.graph.columns
        owners = {
            column: name
            for name in self._identities.group(dataset)
            for column in columns.of(name).tolist()
            if columns.field[column] != STAR
        }
        found = self.reader.columns.by_ids(owners)
        return {column: field for column, (_, field) in found.items()}

    @cached_property
    def column_sources(self) -> dict[int, list[ColumnSource]]:
        """The edges into each column."""
        columns = self.graph.columns
        found: dict[int, list[ColumnSource]] = defaultdict(list)
        edges = zip(
            columns.flow.source.values.tolist(),
            columns.flow.target.values.tolist(),
            columns.rank.values.tolist(),
            strict=True,
        )
        for source, target, rank in dict.fromkeys(edges):
            found[target].append(ColumnSource(source, rank))
        return found

    @cached_property
    def feeding_columns(self) -> set[int]:
        """The columns from which another column derives, directly or not."""
        return {edge.source for edges in self.column_sources.values() for edge in edges}

    @cached_property
    def read_as_a_whole(self) -> set[int]:
        """The datasets from which a job reads every column, or unknown columns."""
        columns = self.graph.columns
        stars = [column for column in self.feeding_columns if columns.field[column] == STAR]
        return {self._identities.canonical(int(columns.dataset[column])) for column in stars}

    @cached_property
    def claimed(self) -> set[tuple[int, int]]:
        """The pairs of a job and a dataset whose column lineage is known."""
        columns = self.graph.columns
        targets = columns.flow.target.values
        jobs = columns.claim_job[columns.claim.values].tolist()
        datasets = self._identities.canonicals(columns.dataset[targets]).tolist()
        return set(zip(jobs, datasets, strict=True))

    @cached_property
    def tags_reached(self) -> list[ReachedTag]:
        """The columns that a propagating tag reaches without being set on them."""
        found = []
        for tag in sorted(propagating_tags(self.reader)):
            tagged = find_tagged(self.graph, self.reader, tag)
            traces = trace_downstream(
                self.graph, self.reader, tagged.columns, settings.read_number(settings.STALE_DAYS)
            )
            for column, path in spread_over(traces).reached.items():
                end, origin = (
                    find_entity(each, self.reader, self._identities) for each in (column, path[0])
                )
                if end is None or origin is None or not isinstance(end.id, ColumnId):
                    continue
                dataset = self._identities.canonical(end.node)
                if dataset not in tagged.datasets and end.id.field != EVERY_FIELD:
                    start = self._identities.canonical(origin.node)
                    found.append(ReachedTag(dataset, end.id.field, tag, start))
        return sorted(found, key=lambda each: (self.name(each.dataset), each.field, each.tag))

    def possible_outputs(self, holding: set[int]) -> Links:
        """Return the datasets that may contain values of these, with the jobs that may write them.

        A job without column lineage may use every column of its inputs. Tests write nothing.
        """
        found: Links = defaultdict(set)
        waiting, seen = list(holding), set(holding)
        while waiting:
            dataset = waiting.pop()
            for job in self.readers[dataset]:
                for output in self.outputs[job] - holding:
                    if (job, output) in self.claimed:
                        continue
                    found[output].add(job)
                    if output not in seen:
                        seen.add(output)
                        waiting.append(output)
        return found

    @cached_property
    def _code_places(self) -> dict[int, CodePlace]:
        """The file and first line of the code of each job."""
        found: dict[int, CodePlace] = {}
        for job, body in self.reader.facets.named(CODE).items():
            code = parse_code({CODE: body})
            if code is not None and code.path:
                found[self._identities.canonical(job)] = CodePlace(code.path, max(code.line, 1))
        return found

    def code_place(self, node: int) -> CodePlace | None:
        """Return the place of the code of a job, or of the jobs that write a dataset."""
        jobs = {node, *self.writers.get(node, ())}
        return min(
            (self._code_places[job] for job in jobs if job in self._code_places), default=None
        )

    @cached_property
    def code_columns(self) -> dict[int, set[str]]:
        """The column names in the code of each job, in lower case."""
        found: dict[int, set[str]] = {}
        for job, body in self.reader.facets.named(CODE).items():
            code = parse_code({CODE: body})
            names = (reference.field for reference in (code and code.references) or ())
            found[job] = {name.casefold() for name in names if name}
        return found
