"""The catalog as a simulation needs it: datasets with their columns, readers and writers.

Everything is loaded on first use and kept for later questions about the same state.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.impact.labels import read_job_type, read_string
from downriver.impact.simulate.bound_script import BoundScript
from downriver.impact.simulate.delta import CatalogColumn
from downriver.impact.simulate.edge_simulation import ColumnEdgeLoader, JobColumnEdge
from downriver.impact.simulate.job_script import JobScript, ScriptCache
from downriver.model.answers import BlindSpot
from downriver.model.facts import EdgeKind
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.custom import CodeFacet, parse_blind_spots, parse_code
from downriver.openlineage.facets.description import parse_owners, parse_tags
from downriver.openlineage.facets.schema import schema_columns
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph import GraphSnapshot
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.custom import BlindSpotEntry
    from downriver.store import CatalogReader

_INCREMENTAL = re.compile(r"materialized\s*[=:]\s*['\"]incremental['\"]|is_incremental\s*\(")


class CatalogDataset(NamedTuple):
    """A dataset under its canonical name."""

    node: int
    id: DatasetId
    names: tuple[str, ...]
    tags: frozenset[str]
    column_tags: dict[str, frozenset[str]]
    owners: tuple[str, ...]
    type: str


class Process(NamedTuple):
    """A job, or a derivation without a job (`key` is then the negative number of its dataset)."""

    key: int
    id: NodeId
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    script: JobScript | None
    code: CodeFacet | None
    path: str
    type: str
    owners: tuple[str, ...]
    tags: frozenset[str]
    incremental: bool
    declared: Mapping[int, list[JobColumnEdge]] | None = None  # by input, where code says it anew


class ConsumerSummary(NamedTuple):
    """What answers show about a process."""

    consumer: str
    name: str
    type: str
    writes: list[str]
    owners: list[str]
    tags: list[str]
    last_run: str | None


class SimulationCatalog:
    """The catalog at one state of a store. One question uses it at a time.

    `reader` is an open view of that state; the owner sets it for each question.
    """

    def __init__(self, graph: GraphSnapshot, scripts: ScriptCache) -> None:
        self._graph = graph
        self._scripts = scripts
        self.reader: CatalogReader | None = None
        self._datasets: dict[int, CatalogDataset] = {}
        self._fields: dict[int, tuple[CatalogColumn, ...] | None] = {}
        self._processes: dict[int, Process] = {}
        self._consumers: dict[int, tuple[int, ...]] = {}
        self._writers: dict[int, tuple[int, ...]] = {}
        self._readings: dict[int, BoundScript | None] = {}
        self._column_edges = ColumnEdgeLoader(graph)
        self._computing: set[int] = set()
        self._cards: dict[int, ConsumerSummary] = {}
        self._spelled: dict[int, dict[str, str]] = {}
        self._stated: dict[int, list[BlindSpot]] = {}

    @property
    def _read(self) -> CatalogReader:
        assert self.reader is not None  # noqa: S101
        return self.reader

    # Datasets

    def canonical(self, node: int) -> int:
        """Return the number of a dataset, the same for all its names."""
        return self._graph.nodes.identities.canonical(node)

    def dataset(self, node: int) -> CatalogDataset:
        """Return a dataset with its tags and owners."""
        known = self._datasets.get(node)
        if known is None:
            known = self._datasets[node] = self._load_dataset(node)
        return known

    def _load_dataset(self, node: int) -> CatalogDataset:
        spoken = self._graph.nodes.identities.display_names([node], self._read)[node]
        facets = self._facets_of(node)
        tags, column_tags = parse_tags(facets.get("tags"))
        return CatalogDataset(
            node,
            DatasetId(spoken.id.namespace, spoken.id.name),
            tuple(name.name for name in [spoken.id, *spoken.aliases]),
            tags,
            column_tags,
            parse_owners(facets.get("ownership")),
            read_string(facets.get("datasetType"), "datasetType").lower(),
        )

    def _facets_of(self, node: int) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in self._graph.nodes.identities.group(node):
            found = {**found, **self._read.facets.of(name)}
        return found

    def fields(self, node: int) -> tuple[CatalogColumn, ...] | None:
        """Return the columns of a dataset: from its schema, else from the SQL that fills it."""
        if node not in self._fields:
            self._fields[node] = self._stated_fields(node) or self._computed_fields(node)
        return self._fields[node]

    def _stated_fields(self, node: int) -> tuple[CatalogColumn, ...] | None:
        body = self._facets_of(node).get("schema")
        columns = schema_columns(body) if body else []
        return tuple(CatalogColumn(c.path, c.type) for c in columns if "." not in c.path) or None

    def _computed_fields(self, node: int) -> tuple[CatalogColumn, ...] | None:
        if node in self._computing:
            return None
        self._computing.add(node)
        try:
            for key in self.writers(node):
                reading = self.reading(self.process(key))
                found = reading.columns_of(node) if reading is not None else None
                if found:
                    return found
        finally:
            self._computing.discard(node)
        return None

    def column_name(self, node: int, column: str) -> str:
        """Return a column as `dataset.column`."""
        if node not in self._spelled:
            self._spelled[node] = {f.name.casefold(): f.name for f in self.fields(node) or ()}
        spelled = self._spelled[node].get(column.casefold(), column)
        return f"{self.dataset(node).id.name}.{spelled}"

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

    # Who reads and writes

    def consumers(self, node: int) -> tuple[int, ...]:
        """Return the keys of the processes that read a dataset."""
        if node not in self._consumers:
            found = [
                self._key(kind, via, far)
                for kind, via, far in self._edges(node, leaving=True)
                if kind in (EdgeKind.READS, EdgeKind.DERIVES)
            ]
            self._consumers[node] = tuple(dict.fromkeys(found))
        return self._consumers[node]

    def writers(self, node: int) -> tuple[int, ...]:
        """Return the keys of the processes that write a dataset."""
        if node not in self._writers:
            found = [
                far if kind == EdgeKind.WRITES else (via or -node)
                for kind, via, far in self._edges(node, leaving=False)
                if kind in (EdgeKind.WRITES, EdgeKind.DERIVES)
            ]
            self._writers[node] = tuple(dict.fromkeys(found))
        return self._writers[node]

    def readers_after(self, key: int) -> list[int]:
        """Return the keys of the processes that read what a process writes."""
        written = self._ends(key, leaving=True) if key > 0 else (-key,)
        return [reader for node in written for reader in self.consumers(node)]

    def _key(self, kind: int, via: int, far: int) -> int:
        if kind == EdgeKind.READS:
            return far
        return via or -self.canonical(far)

    def _edges(self, node: int, *, leaving: bool) -> list[tuple[int, int, int]]:
        flow = self._graph.nodes.flow
        names = np.array(self._graph.nodes.identities.group(abs(node)), np.int32)
        edges = (flow.ends.leaving if leaving else flow.ends.entering).of(names)
        far = (flow.ends.target if leaving else flow.ends.source)[edges]
        return list(
            zip(
                flow.kind[edges].tolist(),
                flow.via[edges].tolist(),
                far.tolist(),
                strict=True,
            )
        )

    def process(self, key: int) -> Process:
        """Return a process with its code."""
        known = self._processes.get(key)
        if known is None:
            loaded = self._load_job(key) if key > 0 else self._load_derivation(-key)
            known = self._processes[key] = loaded
        return known

    def _load_derivation(self, node: int) -> Process:
        """Return a dataset that derives from others without a job."""
        inputs = [
            self.canonical(far)
            for kind, via, far in self._edges(node, leaving=False)
            if kind == EdgeKind.DERIVES and not via
        ]
        dataset = self.dataset(node)
        return Process(
            -node, dataset.id, tuple(dict.fromkeys(inputs)), (node,), None, None, "",
            dataset.type or "table", dataset.owners, dataset.tags, False,
        )  # fmt: skip

    def _load_job(self, job: int) -> Process:
        facets = self._read.facets.of(job)
        code = parse_code(facets)
        sql, dialect = (
            read_string(facets.get("sql"), "query"),
            read_string(facets.get("sql"), "dialect"),
        )
        raw = (code.raw if code is not None else "") or sql
        return Process(
            job,
            self._read.nodes.by_ids([job])[job],
            self._ends(job, leaving=False),
            self._ends(job, leaving=True),
            self._scripts.get(sql, dialect) if sql else None,
            code,
            (code.path if code is not None else "")
            or read_string(facets.get("sourceCodeLocation"), "path"),
            read_job_type(facets.get("jobType")),
            parse_owners(facets.get("ownership")),
            parse_tags(facets.get("tags"))[0],
            bool(_INCREMENTAL.search(raw)),
        )

    def _ends(self, job: int, *, leaving: bool) -> tuple[int, ...]:
        kind = EdgeKind.WRITES if leaving else EdgeKind.READS
        found = [
            self.canonical(far) for k, _, far in self._edges(job, leaving=leaving) if k == kind
        ]
        return tuple(dict.fromkeys(found))

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

    def find_process(self, shown: str) -> Process | None:
        """Return the process with this id in answers, among those that were loaded."""
        for process in self._processes.values():
            if self.shown_as(process) == shown:
                return process
        return None

    def reading(self, process: Process) -> BoundScript | None:
        """Return the SQL of a process under the present schemas, None when it has none."""
        if process.key not in self._readings:
            script = process.script
            self._readings[process.key] = None if script is None else BoundScript(process, self)
        return self._readings[process.key]

    def bind(self, process: Process, table: tuple[str, ...]) -> int | None:
        """Return the dataset that the SQL of a process means by a name, None when ambiguous."""
        wanted = tuple(part.casefold() for part in table)
        candidates = dict.fromkeys([*process.inputs, *process.outputs])
        fitting = [node for node in candidates if self._is_called(node, wanted)]
        return fitting[0] if len(fitting) == 1 else None

    def _is_called(self, node: int, wanted: tuple[str, ...]) -> bool:
        return any(_ends_alike(name, wanted) for name in self.dataset(node).names)

    # Column edges

    def derives(self, process: Process, source: int) -> list[JobColumnEdge]:
        """Return the latest column edges from one input to the outputs of a process."""
        if process.declared is not None:
            return process.declared.get(source, [])
        return self._column_edges.of(process.key, source, self._read)

    def card(self, process: Process) -> ConsumerSummary:
        """Return what answers show about a process."""
        known = self._cards.get(process.key)
        if known is None:
            known = self._cards[process.key] = self._write_card(process)
        return known

    def _write_card(self, process: Process) -> ConsumerSummary:
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
        """Return when a process last ran, or was last seen in an event."""
        if process.key < 0:
            return None
        runs = self._read.runs.latest(process.key, 1)
        at = runs[0].last_at if runs else self._read.nodes.span(process.key).last.at
        return render_time(at)

    def stated_spots(self, jobs: list[int]) -> list[BlindSpot]:
        """Return the blind spots that events of these jobs state."""
        unknown = [job for job in jobs if job not in self._stated]
        if unknown:
            self._stated.update({job: [] for job in unknown})
            for job, body in self._read.facets.blind_spots(unknown).items():
                name = str(self.process(job).id)
                self._stated[job] = [_stated(name, spot) for spot in parse_blind_spots(body)]
        return [spot for job in jobs for spot in self._stated[job]]


def _stated(entity: str, spot: BlindSpotEntry) -> BlindSpot:
    message = f"line {spot.line}: {spot.message}" if spot.line else spot.message
    return BlindSpot(kind=spot.kind, entity=entity, message=message)


def _ends_alike(name: str, wanted: tuple[str, ...]) -> bool:
    parts = tuple(name.casefold().replace("/", ".").split("."))
    if name.casefold() == ".".join(wanted):
        return True
    shared = min(len(parts), len(wanted))
    return parts[-shared:] == wanted[-shared:]
