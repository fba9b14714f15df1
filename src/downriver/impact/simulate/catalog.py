"""The catalog as a simulation needs it: datasets with their columns, readers and writers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from typing_extensions import assert_never

from downriver.capture.code.dbt_build import build_settings, inline_config
from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.unread_jobs import unread_job_spots
from downriver.graph.index.edges import FOREVER
from downriver.impact.simulate.column_edges import load_column_edges
from downriver.impact.simulate.delta import CatalogColumn
from downriver.impact.simulate.process import DerivationKey, Job, JobKey, TableDerivation, job_kind
from downriver.impact.simulate.script.bound_script import BoundScript
from downriver.model.answers import BlindSpot
from downriver.model.facts import EdgeKind
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.facets.custom import (
    BuildFacet,
    parse_blind_spots,
    parse_build,
    parse_code,
)
from downriver.openlineage.facets.dataset import (
    DATASET_TYPE,
    SCHEMA,
    parse_dataset_type,
    schema_columns,
)
from downriver.openlineage.facets.description import OWNERSHIP, TAGS, parse_owners, parse_tags
from downriver.openlineage.facets.job import (
    JOB_TYPE,
    SQL,
    parse_job_type,
    parse_source_code_location,
    parse_sql,
)
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph import GraphSnapshot
    from downriver.impact.simulate.process import JobColumnEdge, Process, ProcessKey
    from downriver.impact.simulate.script.job_script import ScriptCache
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.custom import BlindSpotEntry
    from downriver.store import CatalogReader

_INCREMENTAL = re.compile(r"\bis_incremental\s*\(")


class CatalogDataset(NamedTuple):
    """A dataset under its canonical name."""

    node: int
    id: DatasetId
    names: tuple[str, ...]
    tags: frozenset[str]
    column_tags: dict[str, frozenset[str]]
    owners: tuple[str, ...]
    type: str


class ConsumerSummary(NamedTuple):
    """The properties of a process that answers contain."""

    consumer: str
    name: str
    type: str
    writes: list[str]
    owners: list[str]
    tags: list[str]
    last_run: str | None


class CatalogCache:
    """Values loaded from one state of a store.

    They do not change, and threads share them. Two threads may load the same value at once; either
    copy is kept.
    """

    def __init__(self, scripts: ScriptCache) -> None:
        self.scripts = scripts
        self.datasets: dict[int, CatalogDataset] = {}
        self.fields: dict[int, tuple[CatalogColumn, ...] | None] = {}
        self.column_names: dict[int, dict[str, str]] = {}
        self.jobs: dict[JobKey, Job] = {}
        self.consumers: dict[int, tuple[ProcessKey, ...]] = {}
        self.writers: dict[int, tuple[ProcessKey, ...]] = {}
        self.readings: dict[JobKey, BoundScript] = {}
        self.column_edges: dict[tuple[ProcessKey, int], list[JobColumnEdge]] = {}
        self.summaries: dict[ProcessKey, ConsumerSummary] = {}
        self.blind_spots: dict[int, list[BlindSpot]] = {}


class SimulationCatalog:
    """The catalog that one question reads through its open view of the store.

    With `as_of`, the catalog of that moment; such a catalog needs its own cache.
    """

    def __init__(
        self,
        graph: GraphSnapshot,
        reader: CatalogReader,
        cache: CatalogCache,
        as_of: int = FOREVER,
    ) -> None:
        self._graph = graph
        self._read = reader
        self._cache = cache
        self._as_of = as_of
        self._until = None if as_of == FOREVER else as_of
        self._computing: set[int] = set()

    # Datasets

    def canonical(self, node: int) -> int:
        """Return the number of a dataset, the same for all its names."""
        return self._graph.nodes.identities.canonical(node)

    def dataset(self, node: int) -> CatalogDataset:
        """Return a dataset with its tags and owners."""
        known = self._cache.datasets.get(node)
        if known is None:
            known = self._cache.datasets[node] = self._load_dataset(node)
        return known

    def _load_dataset(self, node: int) -> CatalogDataset:
        display_name = self._graph.nodes.identities.display_names([node], self._read)[node]
        facets = self._facets_of(node)
        tags, column_tags = parse_tags(facets.get(TAGS))
        return CatalogDataset(
            node,
            DatasetId(display_name.id.namespace, display_name.id.name),
            tuple(alias.name for alias in [display_name.id, *display_name.aliases]),
            tags,
            column_tags,
            parse_owners(facets.get(OWNERSHIP)),
            parse_dataset_type(facets.get(DATASET_TYPE)),
        )

    def _facets_of(self, node: int) -> dict[str, bytes]:
        bodies: dict[str, bytes] = {}
        for name in self._graph.nodes.identities.group(node):
            bodies = {**bodies, **self._facets(name)}
        return bodies

    def _facets(self, node: int) -> dict[str, bytes]:
        return self._read.facets.of_each([node], until=self._until).get(node, {})

    def fields(self, node: int) -> tuple[CatalogColumn, ...] | None:
        """Return the columns of a dataset: from its schema, else from the SQL that fills it."""
        if node not in self._cache.fields:
            self._cache.fields[node] = self._stated_fields(node) or self._computed_fields(node)
        return self._cache.fields[node]

    def _stated_fields(self, node: int) -> tuple[CatalogColumn, ...] | None:
        body = self._facets_of(node).get(SCHEMA)
        columns = schema_columns(body) if body else []
        return tuple(CatalogColumn(c.path, c.type) for c in columns if "." not in c.path) or None

    def _computed_fields(self, node: int) -> tuple[CatalogColumn, ...] | None:
        if node in self._computing:
            return None
        self._computing.add(node)
        try:
            for key in self.writers(node):
                reading = self.reading(self.process(key))
                catalog_columns = reading.columns_of(node) if reading is not None else None
                if catalog_columns:
                    return catalog_columns
        finally:
            self._computing.discard(node)
        return None

    def column(self, node: int, column: str) -> ColumnId:
        """Return a column of a dataset, spelled as in the schema."""
        if node not in self._cache.column_names:
            self._cache.column_names[node] = {
                f.name.casefold(): f.name for f in self.fields(node) or ()
            }
        spelled = self._cache.column_names[node].get(column.casefold(), column)
        return ColumnId(self.dataset(node).id, spelled)

    def known_columns(self, node: int) -> list[str]:
        """Return the columns that a schema, an edge or a query names."""
        names = [field.name for field in self.fields(node) or ()]
        for same in self._graph.nodes.identities.group(node):
            names += self._read.columns.list_names(same)
        return list(dict.fromkeys(names))

    def nodes_named(self, name: str) -> dict[int, NodeId]:
        """Return every dataset and job whose name ends in this name."""
        return self._read.nodes.named(name)

    def find_dataset(self, dataset: DatasetId) -> int | None:
        """Return the number of a dataset, None when it is unknown."""
        number = self._read.nodes.find(dataset)
        return None if number is None else self.canonical(number)

    def possible_cuts(self, nodes: Iterable[int]) -> list[BlindSpot]:
        """Return the other names under which the data of these datasets may continue."""
        datasets = np.unique(np.array(list(nodes), np.int32))
        cuts = CutDetector(self._graph, self._read)
        return cuts.blind_spots(datasets, downstream=True)

    def unread_jobs(self, nodes: Iterable[int]) -> list[BlindSpot]:
        """Return a blind spot if unread jobs of the same project may use these datasets."""
        datasets = np.unique(np.array(list(nodes), np.int32))
        if not len(datasets):
            return []
        entity = str(self.dataset(int(datasets[0])).id)
        return unread_job_spots(self._graph, self._read, datasets, entity=entity, as_of=self._as_of)

    # Readers and writers

    def consumers(self, node: int) -> tuple[ProcessKey, ...]:
        """Return the keys of the processes that read a dataset."""
        if node not in self._cache.consumers:
            keys = [
                JobKey(far) if kind == EdgeKind.READS else self._derivation_key(via, far)
                for kind, via, far in self._edges(node, leaving=True)
                if kind in (EdgeKind.READS, EdgeKind.DERIVES)
            ]
            self._cache.consumers[node] = tuple(dict.fromkeys(keys))
        return self._cache.consumers[node]

    def writers(self, node: int) -> tuple[ProcessKey, ...]:
        """Return the keys of the processes that write a dataset."""
        if node not in self._cache.writers:
            keys = [
                JobKey(far) if kind == EdgeKind.WRITES else self._derivation_key(via, node)
                for kind, via, far in self._edges(node, leaving=False)
                if kind in (EdgeKind.WRITES, EdgeKind.DERIVES)
            ]
            self._cache.writers[node] = tuple(dict.fromkeys(keys))
        return self._cache.writers[node]

    def readers_after(self, key: ProcessKey) -> list[ProcessKey]:
        """Return the keys of the processes that read what a process writes."""
        match key:
            case JobKey(job=job):
                written = self._ends(job, leaving=True)
            case DerivationKey(dataset=dataset):
                written = (dataset,)
            case _:
                assert_never(key)
        return [reader for node in written for reader in self.consumers(node)]

    def _derivation_key(self, via: int, dataset: int) -> ProcessKey:
        """Return the job that a derived edge names, else the derivation itself."""
        return JobKey(via) if via else DerivationKey(self.canonical(dataset))

    def _edges(self, node: int, *, leaving: bool) -> list[tuple[int, int, int]]:
        flow = self._graph.nodes.flow
        names = np.array(self._graph.nodes.identities.group(node), np.int32)
        edges = (flow.ends.leaving if leaving else flow.ends.entering).of(names)
        edges = edges[flow.first_at.of(edges) <= self._as_of]
        far = (flow.ends.target if leaving else flow.ends.source)[edges]
        return list(
            zip(
                flow.kind[edges].tolist(),
                flow.via[edges].tolist(),
                far.tolist(),
                strict=True,
            )
        )

    def process(self, key: ProcessKey) -> Process:
        """Return a process with its code."""
        match key:
            case JobKey(job=number):
                return self.job(number)
            case DerivationKey(dataset=node):
                return self._derivation(node)
            case _:
                assert_never(key)

    def job(self, number: int) -> Job:
        """Return a job with its code, by its number in the catalog."""
        key = JobKey(number)
        known = self._cache.jobs.get(key)
        if known is None:
            known = self._cache.jobs[key] = self._load_job(key)
        return known

    def _derivation(self, node: int) -> TableDerivation:
        """Return the derivation of a dataset that derives from others without a job."""
        inputs = [
            self.canonical(far)
            for kind, via, far in self._edges(node, leaving=False)
            if kind == EdgeKind.DERIVES and not via
        ]
        dataset = self.dataset(node)
        return TableDerivation(
            DerivationKey(node),
            dataset.id,
            tuple(dict.fromkeys(inputs)),
            node,
            dataset.type or "table",
            dataset.owners,
            dataset.tags,
        )

    def _load_job(self, key: JobKey) -> Job:
        job = key.job
        facets = self._facets(job)
        code = parse_code(facets)
        sql = parse_sql(facets.get(SQL))
        raw = (code.raw if code is not None else "") or sql.query
        return Job(
            key,
            self._read.nodes.by_ids([job])[job],
            self._ends(job, leaving=False),
            self._ends(job, leaving=True),
            self._cache.scripts.get(sql.query, sql.dialect) if sql.query else None,
            code,
            (code.path if code is not None else "") or parse_source_code_location(facets).path,
            job_kind(parse_job_type(facets.get(JOB_TYPE))),
            parse_owners(facets.get(OWNERSHIP)),
            parse_tags(facets.get(TAGS))[0],
            parse_build(facets) or _inline_build(raw),
        )

    def _ends(self, job: int, *, leaving: bool) -> tuple[int, ...]:
        kind = EdgeKind.WRITES if leaving else EdgeKind.READS
        ends = [self.canonical(far) for k, _, far in self._edges(job, leaving=leaving) if k == kind]
        if not leaving:
            ends += self._column_sources(job)
        return tuple(dict.fromkeys(ends))

    def _column_sources(self, job: int) -> list[int]:
        """Return the sources of the columns that a job writes, also those that are not inputs."""
        return [
            self.canonical(far)
            for written in self._ends(job, leaving=True)
            for kind, via, far in self._edges(written, leaving=False)
            if kind == EdgeKind.DERIVES and via == job
        ]

    def shown_id(self, process: Process) -> NodeId:
        """Return the id to show: the dataset's, where a query is its only writer."""
        if process.type in ("dbt_model", "sql") and len(process.outputs) == 1:
            (node,) = process.outputs
            if self.writers(node) == (process.key,):
                return self.dataset(node).id
        return process.id

    def shown_as(self, process: Process) -> str:
        """Return the id of a process in answers."""
        return str(self.shown_id(process))

    def find_job(self, shown: str) -> Job | None:
        """Return the job with this id in answers, among those that were loaded."""
        for job in list(self._cache.jobs.values()):
            if self.shown_as(job) == shown:
                return job
        return None

    def reading(self, process: Process) -> BoundScript | None:
        """Return the SQL of a process, read under the current schemas; None if it has no SQL."""
        if not isinstance(process, Job) or process.script is None:
            return None
        known = self._cache.readings.get(process.key)
        if known is None:
            known = self._cache.readings[process.key] = BoundScript(process, process.script, self)
        return known

    def bind(self, process: Process, table: tuple[str, ...]) -> int | None:
        """Return the dataset that a name in the SQL of a process refers to, None if ambiguous."""
        wanted = tuple(part.casefold() for part in table)
        candidates = dict.fromkeys([*process.inputs, *process.outputs])
        fitting = [node for node in candidates if self._is_called(node, wanted)]
        return fitting[0] if len(fitting) == 1 else None

    def _is_called(self, node: int, wanted: tuple[str, ...]) -> bool:
        return any(_ends_alike(name, wanted) for name in self.dataset(node).names)

    # Column edges

    def derives(self, process: Process, source: int) -> list[JobColumnEdge]:
        """Return the latest column edges from one input to the outputs of a process."""
        if isinstance(process, Job) and process.declared is not None:
            return process.declared.get(source, [])
        place = (process.key, source)
        known = self._cache.column_edges.get(place)
        if known is None:
            known = load_column_edges(process.key, source, self._graph, self._read, self._as_of)
            self._cache.column_edges[place] = known
        return known

    # Properties in answers

    def summary(self, process: Process) -> ConsumerSummary:
        """Return the properties of a process that answers contain."""
        known = self._cache.summaries.get(process.key)
        if known is None:
            known = self._cache.summaries[process.key] = self._summarize(process)
        return known

    def _summarize(self, process: Process) -> ConsumerSummary:
        outputs = [self.dataset(node) for node in process.outputs]
        shown = self.shown_id(process)
        owners = [*process.owners, *(owner for dataset in outputs for owner in dataset.owners)]
        types = [dataset.type for dataset in outputs if dataset.type]
        return ConsumerSummary(
            str(shown),
            shown.name,
            process.type if process.type != "job" or not types else types[0],
            [str(dataset.id) for dataset in outputs],
            list(dict.fromkeys(owners)),
            sorted(process.tags.union(*(dataset.tags for dataset in outputs))),
            self._last_run(process),
        )

    def _last_run(self, process: Process) -> str | None:
        """Return when a job last ran, or was last seen in an event."""
        if not isinstance(process, Job):
            return None
        job = process.key.job
        runs = self._read.runs.latest_of_each([job], 1, self._until).get(job)
        at = runs[0].last_at if runs else self._read.nodes.span(job).last.at
        return render_time(at)

    def stated_spots(self, jobs: list[Job]) -> list[BlindSpot]:
        """Return the blind spots that events of these jobs state."""
        names = {job.key.job: str(job.id) for job in jobs}
        known = self._cache.blind_spots
        unknown = [number for number in names if number not in known]
        if unknown:
            stated = self._read.facets.blind_spots(unknown)
            for number in unknown:
                body = stated.get(number)
                spots = parse_blind_spots(body) if body is not None else []
                known[number] = [_blind_spot(names[number], spot) for spot in spots]
        return [spot for number in names for spot in known[number]]


def _inline_build(raw: str) -> BuildFacet:
    """Return how a model is built, as its code configures it, if no event contains the build."""
    build = build_settings([inline_config(raw)], {})
    if not build.materialized and _INCREMENTAL.search(raw):
        return msgspec.structs.replace(build, materialized="incremental")
    return build


def _blind_spot(entity: str, spot: BlindSpotEntry) -> BlindSpot:
    message = f"line {spot.line}: {spot.message}" if spot.line else spot.message
    return BlindSpot(kind=spot.kind, entity=entity, message=message)


def _ends_alike(name: str, wanted: tuple[str, ...]) -> bool:
    parts = tuple(name.casefold().replace("/", ".").split("."))
    if name.casefold() == ".".join(wanted):
        return True
    shared = min(len(parts), len(wanted))
    return parts[-shared:] == wanted[-shared:]
