"""The catalog for a comparison of two commits.

It contains the code of the base commit, which is read now, and the part of the store that is
outside the repository. Code of the repository that the store captured is not used.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.scan import Repository, find_projects
from downriver.impact import (
    CatalogCache,
    CommitCode,
    ScriptCache,
    SimulationCatalog,
    is_same_file,
    list_tables,
    list_used,
    read_commits,
    relate_commits,
)
from downriver.impact.simulate.process import JobKey
from downriver.model.answers import BlindSpot
from downriver.model.facts import EdgeKind
from downriver.model.ids import DEFAULT_NAMESPACE, DatasetId, JobId, short_name
from downriver.openlineage.facets.custom import parse_code
from downriver.openlineage.facets.job import parse_source_code_location
from downriver.service.capture import scan_catalog
from downriver.service.limits import DBT_NAMESPACE
from downriver.service.session import StoreSession, now
from downriver.store import MEMORY, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.capture.code import CodeJob
    from downriver.capture.scan import ScanCatalog, ScanResult
    from downriver.graph import CatalogSnapshot
    from downriver.impact import CommitTrees, FilePair
    from downriver.impact.changes.edited_code import EditedCode
    from downriver.impact.simulate.process import ProcessKey
    from downriver.model.verdicts import ComparedCommits

_OF_TABLES = ("PROPERTIES", "TEST")  # the kinds of jobs that only test or describe tables
_DBT_KINDS = frozenset({
    "exposure", "metric", "semantic_model", "saved_query", "test", "unit_test", "analysis",
})  # fmt: skip


class BaseCatalog(NamedTuple):
    """A store in memory with the base of a change, the edited code, and its unread parts."""

    session: StoreSession
    edited: EditedCode
    commits: ComparedCommits | None
    blind_spots: list[BlindSpot]


@contextmanager
def open_base(
    session: StoreSession, pairs: Sequence[FilePair], trees: CommitTrees
) -> Iterator[BaseCatalog]:
    """Open the catalog for the edits between two commits.

    Only code that they can affect is read.
    """
    store = open_store(MEMORY)
    overlay = StoreSession(store)
    try:
        with session.reading() as view:
            repositories = [Repository(tree, is_fixed=True) for tree in (trees.base, trees.head)]
            own = OwnCode(view, trees, repositories)
            names = own.names()
            base, head = (CommitCode(repository, names) for repository in repositories)
            edited = read_commits(pairs, base, head)
            scan = _read_base(pairs, edited, base, head)
            outside = _Outside(view, own)
            outside.add(_names_in(scan, edited))
            store.merge(view.reader.facts.about(outside.nodes, own.written(scan)))
            overlay.ingest_many(list(scan.events(now())))
            commits = relate_commits(trees, own.stored_commit())
        yield BaseCatalog(overlay, edited, commits, _unread_spots(scan, pairs))
    finally:
        overlay.close()


def _read_base(
    pairs: Sequence[FilePair], edited: EditedCode, base: CommitCode, head: CommitCode
) -> ScanResult:
    """Read the edited files of the base, the files downstream, and the columns they need.

    A job whose table names all come from outside may read a changed table, too.
    """
    paths = {pair.path for pair in pairs if pair.path not in edited.options_only}
    paths |= list_used(pairs, [base, head]) | edited.paths
    tables = list_tables(pairs, edited)
    tables |= {name for path in paths if head.has(path) for name in head.outputs(path)}
    reached = base.downstream(tables, paths)
    edited_texts = [(path, head.text(path)) for path in paths if head.has(path)]
    needed = reached | base.upstream(reached, edited_texts)
    if not paths:
        return base.scan(needed)
    scan = base.scan(needed | base.parameterized())
    scan.jobs = [job for job in scan.jobs if job.path in needed or _is_isolated(job)]
    _leave_out_disabled(scan, head)
    scan.unread = [unread for unread in scan.unread if unread.path in needed]
    return scan


def _leave_out_disabled(scan: ScanResult, head: CommitCode) -> None:
    """Remove what dbt models read that are turned off at head, and their tests: dbt skips both."""
    tables = head.disabled_tables({job.path for job in scan.jobs})

    def is_disabled(dataset: DatasetId) -> bool:
        return dataset.name.casefold() in tables

    for job in scan.jobs if tables else ():
        if job.integration == "DBT" and job.kind in _OF_TABLES:
            job.inputs = [dataset for dataset in job.inputs if not is_disabled(dataset)]
            job.references = [r for r in job.references if not is_disabled(r.dataset)]
        elif job.integration == "DBT" and any(map(is_disabled, job.outputs)):
            job.inputs, job.references, job.edges = [], [], []


def _is_isolated(job: CodeJob) -> bool:
    """Return whether a job has blind spots and touches no known dataset."""
    return bool(job.spots) and not job.inputs and not job.outputs


def _names_in(scan: ScanResult, edited: EditedCode) -> set[str]:
    """Return the short names of all tables in the code that was read."""
    jobs = [*scan.jobs, *edited.base.jobs, *edited.head.jobs]
    names = {short_name(d.name) for job in jobs for d in (*job.inputs, *job.outputs)}
    return names | {
        short_name(reference.dataset.name) for job in jobs for reference in job.references
    }


def _unread_spots(scan: ScanResult, pairs: Sequence[FilePair]) -> list[BlindSpot]:
    """Return unedited files that cannot be read and may read a changed table."""
    edited = {pair.path for pair in pairs}
    return [
        BlindSpot(
            kind="unread_file",
            entity=unread.location,
            message=f"may read what changes and could not be read: {unread.detail}",
        )
        for unread in scan.unread
        if unread.path not in edited
    ]


class OwnCode:
    """Finds the jobs of the store that are code of this repository, and the names of its tables."""

    def __init__(
        self, view: CatalogSnapshot, trees: CommitTrees, repositories: Sequence[Repository]
    ) -> None:
        self._view = view
        self._revision = trees.revision
        self._files: dict[str, list[str]] = {}
        self._models: set[str] = set()
        self._projects: set[str] = set()
        self._own: dict[int, bool] = {}
        self._commits: Counter[str] = Counter()
        self._datasets: dict[str, DatasetId | None] = {}
        for repository in repositories:
            self._add_names(repository)

    def _add_names(self, repository: Repository) -> None:
        """Add the files of one side, and the names of its dbt projects and models."""
        files = list(repository.files())
        for path in files:
            self._files.setdefault(PurePosixPath(path).name, []).append(path)
        projects = find_projects(repository, files)
        self._projects |= {project.name for project in projects if project.name}
        self._models |= {
            short_name(model.table).casefold()
            for project in projects
            for model in project.all_models
        }

    def has(self, number: int) -> bool:
        """Return whether a job of the store is code of this repository."""
        if number not in self._own:
            node = self._view.reader.nodes.by_ids([number]).get(number)
            self._own[number] = isinstance(node, JobId) and self._is_own(number, node)
        return self._own[number]

    def _is_own(self, number: int, job: JobId) -> bool:
        facets = self._view.reader.facets.of(number)
        location = parse_source_code_location(facets)
        if location.repository and self._revision is not None:
            if location.repository != self._revision.repository:
                return False
            if job.namespace != DBT_NAMESPACE or self._is_of_project(job):
                self._commits[location.commit] += 1
                return True
            return False  # a model of a package
        if job.namespace == DBT_NAMESPACE:
            return self._is_of_project(job)
        code = parse_code(facets)
        path = (code.path if code is not None else "") or location.path
        same_name = self._files.get(PurePosixPath(path).name, []) if path else []
        return any(is_same_file(path, file) for file in same_name)

    def _is_of_project(self, job: JobId) -> bool:
        """Return whether a dbt job is of one of the repository's projects, and not of a package."""
        parts = job.name.removesuffix(".test").removesuffix(".snapshot").split(".")
        if parts[0] in _DBT_KINDS:
            return len(parts) > 1 and parts[1] in self._projects
        return any(part in self._projects for part in parts[-3:-1])

    def stored_commit(self) -> str:
        """Return the commit from which most of the found jobs were captured."""
        return self._commits.most_common(1)[0][0] if self._commits else ""

    def written(self, scan: ScanResult) -> set[int]:
        """Return the numbers in the store of the datasets that the base fills."""
        numbers = (
            self._view.reader.nodes.find(dataset) for job in scan.jobs for dataset in job.outputs
        )
        return {number for number in numbers if number is not None}

    def names(self) -> ScanCatalog:
        """Return the names in the store, without the tables of this repository."""
        known = scan_catalog(self._view, DEFAULT_NAMESPACE)

        def find(table: str) -> DatasetId | None:
            return self._dataset_of_model(table) or known.find(table)

        def columns_of(dataset: DatasetId) -> list[str] | None:
            return None if self._fills(dataset) else known.columns_of(dataset)

        return msgspec.structs.replace(known, find=find, columns_of=columns_of)

    def _dataset_of_model(self, table: str) -> DatasetId | None:
        """Return the dataset that the store's job of a dbt model fills."""
        name = short_name(table)
        if name not in self._models:
            return None
        if name not in self._datasets:
            reader = self._view.reader
            filled = {
                output
                for number, node in reader.nodes.named(name).items()
                if isinstance(node, JobId) and self.has(number)
                for output in reader.nodes.outputs_of(number)
                if isinstance(output, DatasetId)
            }
            self._datasets[name] = filled.pop() if len(filled) == 1 else None
        return self._datasets[name]

    def _fills(self, dataset: DatasetId) -> bool:
        if short_name(dataset.name) in self._models:
            return True
        reader = self._view.reader
        number = reader.nodes.find(dataset)
        if number is None:
            return False
        graph = self._view.graph.nodes
        writers = graph.neighbours([number], EdgeKind.WRITES, downstream=False)
        return any(self.has(writer) for writer in writers.get(number, ()))


class _Outside:
    """Collects the nodes of the store that lie outside the repository and matter to a change."""

    def __init__(self, view: CatalogSnapshot, own: OwnCode) -> None:
        self._view = view
        self._own = own
        cache = CatalogCache(ScriptCache())
        self._catalog = SimulationCatalog(view.graph, view.reader, cache)
        self.nodes: set[int] = set()

    def add(self, names: Iterable[str]) -> None:
        """Add all datasets with these short names, their readers downstream and their writers."""
        todo = [
            self._catalog.canonical(number)
            for name in names
            for number, node in self._catalog.nodes_named(name).items()
            if isinstance(node, DatasetId)
        ]
        seen = set(todo)
        for node in todo:
            self._add_writers(node, set())
        while todo:
            node = todo.pop()
            self._add_dataset(node)
            for key in self._catalog.consumers(node):
                for output in self._add_reader(key):
                    if output not in seen:
                        seen.add(output)
                        todo.append(output)

    def _add_dataset(self, node: int) -> None:
        self.nodes.update(self._view.graph.nodes.identities.group(node))

    def _add_reader(self, key: ProcessKey) -> tuple[int, ...]:
        """Add a job elsewhere with its datasets, and return those that it fills."""
        if isinstance(key, JobKey):
            if self._own.has(key.job):
                return ()
            self.nodes.add(key.job)
        process = self._catalog.process(key)
        for node in process.inputs:
            self._add_writers(node, set())
        for node in (*process.inputs, *process.outputs):
            self._add_dataset(node)
        return process.outputs

    def _add_writers(self, node: int, seen: set[int]) -> None:
        """Add the jobs elsewhere that fill a dataset; behind an unknown schema, those before it."""
        if node in seen:
            return
        seen.add(node)
        for key in self._catalog.writers(node):
            if not isinstance(key, JobKey) or self._own.has(key.job):
                continue
            self.nodes.add(key.job)
            process = self._catalog.process(key)
            for dataset in (*process.inputs, *process.outputs):
                self._add_dataset(dataset)
            if self._catalog.fields(node) is None:
                for dataset in process.inputs:
                    self._add_writers(dataset, seen)
