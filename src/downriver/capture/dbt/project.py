"""A whole dbt project as events: declared lineage, runs and test results."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.code import (
    CodeJob,
    DatasetNote,
    render_dataset_note,
    render_job,
    render_run,
)
from downriver.capture.code.dbt_resources import entries, mapping, sort_parents_first, text
from downriver.capture.dbt.artifacts import Artifacts, PropertyLines
from downriver.capture.dbt.consumers import DbtConsumers
from downriver.capture.dbt.models import DbtModels
from downriver.capture.dbt.nodes import (
    DbtNaming,
    DbtNode,
    default_namespace,
    list_nodes,
)
from downriver.capture.dbt.quality import (
    PASSED,
    DbtTests,
    NodeResult,
    assertions_input,
    freshness_input,
    list_results,
)
from downriver.errors import InvalidEventError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.events import run_event
from downriver.openlineage.wire import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from downriver.capture.code import SourceRevision
    from downriver.openlineage.wire import Event

_BUILT = frozenset({"model", "seed", "snapshot", "analysis"})
_PLURALS = {"analysis": "analyses"}
_STATES = {"success": "COMPLETE", "pass": "COMPLETE", "error": "FAIL", "fail": "FAIL"}


class DbtBlindSpot(msgspec.Struct, frozen=True):
    """A part of a project whose lineage is unknown."""

    path: str
    line: int
    kind: str
    message: str


class DbtCapture(msgspec.Struct, kw_only=True):
    """The jobs and events read from a target directory."""

    project: str
    dbt_version: str
    manifest_version: int
    adapter: str
    namespace: str
    counts: dict[str, int]
    column_edges: int
    blind_spots: list[DbtBlindSpot]
    jobs: list[CodeJob]
    events: list[Event]


def relation_names(artifacts: Artifacts) -> list[str]:
    """Return the full names of a project's tables, to find their namespace in the catalog."""
    return [node.relation for node in list_nodes(artifacts) if node.is_stored]


class DbtName(NamedTuple):
    """A model, seed, snapshot or source: its file, job and dataset."""

    path: str
    job: JobId
    dataset: DatasetId


def list_names(
    artifacts: Artifacts,
    namespace_of: Callable[[list[str]], str | None],
    job_namespace: str,
) -> list[DbtName]:
    """Return the names of a project's tables and of their jobs."""
    naming = make_naming(artifacts, namespace_of(relation_names(artifacts)), job_namespace)
    return [
        DbtName(
            node.path if node.kind in ("model", "snapshot") else "",
            naming.job(node),
            naming.dataset(node),
        )
        for node in list_nodes(artifacts)
        if node.is_stored
    ]


def list_exposures(artifacts: Artifacts, job_namespace: str) -> dict[str, tuple[JobId, DatasetId]]:
    """Return the job and the dataset of each exposure, by its name."""
    naming = make_naming(artifacts, None, job_namespace)
    names = {key: text(raw.get("name")) for key, raw in artifacts.resources("exposures").items()}
    return {
        name: (naming.consumer_job(key), naming.consumer("exposures", name))
        for key, name in names.items()
    }


def capture_dbt(
    artifacts: Artifacts,
    *,
    namespace: str | None,
    job_namespace: str,
    project_dir: Path | None,
    revision: SourceRevision | None = None,
    now: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DbtCapture:
    """Read a project. `now` is the time of events for which the files give none."""
    naming = make_naming(artifacts, namespace, job_namespace)
    reading = _Reading(artifacts, naming, PropertyLines(project_dir))
    reading.read(progress)
    at = _time(text(artifacts.metadata.get("generated_at")), now)
    return DbtCapture(
        project=naming.project,
        dbt_version=text(artifacts.metadata.get("dbt_version")),
        manifest_version=artifacts.version,
        adapter=naming.adapter,
        namespace=naming.namespace,
        counts=reading.counts(),
        column_edges=len({edge for job in reading.jobs for edge in job.edges}),
        blind_spots=[
            DbtBlindSpot(job.path, spot.line, spot.kind, spot.message)
            for job in reading.jobs
            for spot in job.spots
        ],
        jobs=reading.jobs,
        events=[*reading.declared(at, revision), *reading.observed(at)],
    )


def make_naming(artifacts: Artifacts, namespace: str | None, job_namespace: str) -> DbtNaming:
    """Return the naming of a project. `namespace` replaces the project's own namespace."""
    adapter = text(artifacts.metadata.get("adapter_type"))
    project = text(artifacts.metadata.get("project_name")) or _first_package(artifacts)
    return DbtNaming(
        project=project,
        adapter=adapter,
        namespace=namespace or default_namespace(adapter, project),
        job_namespace=job_namespace,
    )


def _first_package(artifacts: Artifacts) -> str:
    """Return the package of most models, for a manifest without a project name."""
    packages = Counter(
        text(raw.get("package_name"))
        for raw in artifacts.resources("nodes").values()
        if raw.get("resource_type") == "model"
    )
    return packages.most_common(1)[0][0] if packages else "dbt"


class _Reading:
    """Reads one project."""

    def __init__(self, artifacts: Artifacts, naming: DbtNaming, places: PropertyLines) -> None:
        self._artifacts = artifacts
        self._naming = naming
        self._nodes = {node.id: node for node in list_nodes(artifacts)}
        self._models = DbtModels(artifacts, self._nodes, naming)
        self._tests = DbtTests(self._nodes, self._models, places)
        self._consumers = DbtConsumers(artifacts, self._nodes, self._models, places)
        self._built: dict[str, CodeJob] = {}
        self.jobs: list[CodeJob] = []

    def read(self, progress: Callable[[int, int], None]) -> None:
        ordered = sort_parents_first(self._nodes, lambda key: self._nodes[key].depends_on)
        built = [self._nodes[key] for key in ordered if self._nodes[key].kind in _BUILT]
        for done, node in enumerate(built, 1):
            self._built[node.id] = self._models.read(node)
            progress(done, len(built))
        self.jobs = [
            *self._built.values(),
            *self._consumers.read(self._naming),
            *self._tests.jobs(self._naming),
        ]

    def counts(self) -> dict[str, int]:
        counts = Counter(_PLURALS.get(node.kind, f"{node.kind}s") for node in self._nodes.values())
        for kind in ("exposures", "metrics", "semantic_models", "saved_queries"):
            counts[kind] = len(self._artifacts.resources(kind))
        return {kind: number for kind, number in sorted(counts.items()) if number}

    # Events

    def declared(self, at: int, revision: SourceRevision | None) -> Iterator[Event]:
        """Yield the declared lineage: sources, then every job with its outputs."""
        notes = {
            self._naming.dataset(n): self._note(n) for n in self._nodes.values() if n.is_stored
        }
        for node in self._nodes.values():
            if node.kind == "source":
                yield render_dataset_note(self._note(node), at)
        for job in self.jobs:
            yield render_job(job, at, notes, revision=revision)

    def observed(self, at: int) -> Iterator[Event]:
        """Yield the run in run_results.json, its test results and freshness checks."""
        results = list_results(self._artifacts)
        metadata = mapping(self._artifacts.run_results.get("metadata"))
        ran_at = _time(text(metadata.get("generated_at")), at)
        invocation = text(metadata.get("invocation_id"))
        for result in results:
            if result.id in self._built and result.status in _STATES:
                yield from self._run(result, invocation, ran_at)
        yield from self._assertions({r.id: r for r in results}, invocation, ran_at)
        yield from self._freshness(at)

    def _run(self, result: NodeResult, invocation: str, at: int) -> Iterator[Event]:
        job = self._built[result.id]
        run = _run_id(invocation, result.id, at)
        if result.started:
            started = _time(result.started, at)
            yield run_event(job.id, run, "START", started, inputs=[], outputs=[])
        yield render_run(job, run, _STATES[result.status], _time(result.completed, at))

    def _assertions(
        self, results: dict[str, NodeResult], invocation: str, at: int
    ) -> Iterator[Event]:
        for key, tests in self._tests.of.items():
            node = self._nodes[key]
            tested = assertions_input(self._naming.dataset(node), tests, results)
            if tested is None:
                continue
            failed = any(_has_failed(test, results) for test in tests)
            job = self._naming.job(node, ".test")
            run = _run_id(invocation, f"{key}.test", at)
            state = "FAIL" if failed else "COMPLETE"
            yield run_event(job, run, state, at, inputs=[tested], outputs=[])

    def _freshness(self, at: int) -> Iterator[Event]:
        for raw in entries(self._artifacts.sources.get("results")):
            node = self._nodes.get(text(raw.get("unique_id")))
            if node is None:
                continue
            checked = _time(text(raw.get("snapshotted_at")), at)
            job = self._naming.job(node, ".freshness")
            state = "FAIL" if text(raw.get("status")) in ("error", "runtime error") else "COMPLETE"
            run = _run_id("freshness", node.id, checked)
            tested = freshness_input(self._naming.dataset(node), raw)
            yield run_event(job, run, state, checked, inputs=[tested], outputs=[])

    def _note(self, node: DbtNode) -> DatasetNote:
        alias = self._naming.alias(node)
        # Only complete lists: documentation often lists only some of the columns.
        columns = self._models.columns.get(node.relation.casefold(), [])
        spelled = {column.name.casefold(): column.name for column in columns}
        return DatasetNote(
            id=self._naming.dataset(node),
            columns=columns,
            description=node.description,
            owners=node.owners,
            tags=node.tags,
            column_tags={spelled.get(c.casefold(), c): t for c, t in node.column_tags.items()},
            aliases=[alias] if isinstance(alias, DatasetId) else [],
        )


def _has_failed(test: DbtNode, results: dict[str, NodeResult]) -> bool:
    """Return whether a test failed. A warning is not a failure."""
    result = results.get(test.id)
    return result is not None and result.status not in {*PASSED, "warn", "skipped"}


def _run_id(invocation: str, key: str, at: int) -> str:
    """Return the id of a run: reading the same files again gives the same id."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"dbt:{invocation or at}:{key}"))


def _time(written: str, otherwise: int) -> int:
    if not written:
        return otherwise
    try:
        return parse_time(written, "generated_at")
    except InvalidEventError:
        return otherwise
