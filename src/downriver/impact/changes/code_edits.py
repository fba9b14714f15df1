"""Compares edited Python, notebooks and dbt property files: the changes they make."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.impact.changes.code_diff import (
    DatasetDifference,
    compare_definitions,
    declared_columns,
    is_same_work,
    write_definition,
)
from downriver.impact.simulate.delta import ResolvedChange
from downriver.impact.simulate.process import JobColumnEdge
from downriver.impact.simulate.script.job_script import JobScript
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    TableDrop,
)
from downriver.model.ids import JobId, short_name
from downriver.model.unread import Unread, UnreadReason
from downriver.openlineage.facets.custom import CodeFacet, CodeReference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.capture.code import CodeJob
    from downriver.capture.scan import ScanResult
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.process import Job, JobKey
    from downriver.model.ids import DatasetId


def is_same_file(one: str, other: str) -> bool:
    """Return whether two paths, relative to different folders, may be the same file."""
    shorter, longer = sorted(
        (tuple(PurePosixPath(path).parts) for path in (one, other)), key=lambda parts: len(parts)
    )
    return longer[len(longer) - len(shorter) :] == shorter


_PROPERTIES = ("PROPERTIES", "TEST")  # the job kind of dbt's property files


class QueryEdit(NamedTuple):
    """A query in a job's code, before and after."""

    process: Job
    base: JobScript
    head: JobScript


class CodeEdits(NamedTuple):
    """The result of edited code: changes, jobs with their new code, and unread parts."""

    changes: list[ResolvedChange]
    rewritten: dict[JobKey, Job]
    queries: list[QueryEdit]
    unread: list[Unread]


def compare_code(base: ScanResult, head: ScanResult, catalog: SimulationCatalog) -> CodeEdits:
    """Compare what the scanner read in the edited files of two commits."""
    comparing = _JobComparison(base, head, catalog)
    for job in base.jobs:
        comparing.compare(job)
    comparing.note_unread()
    return comparing.found


def list_edited_jobs(base: ScanResult, head: ScanResult) -> list[CodeJob]:
    """Return the jobs that differ between the two commits."""
    sides = [{job.id: job for job in side.jobs} for side in (base, head)]
    return [
        job
        for side, other in (sides, sides[::-1])
        for job in side.values()
        if job.id not in other or not is_same_work(job, other[job.id])
    ]


class _JobComparison:
    def __init__(self, base: ScanResult, head: ScanResult, catalog: SimulationCatalog) -> None:
        self._base = base
        self._head = head
        self._catalog = catalog
        self._now = {job.id: job for job in head.jobs}
        self._known = {job.id for job in base.jobs}
        self._edited = {p.key for job in base.jobs if (p := find_job(job, catalog)) is not None}
        self.found = CodeEdits([], {}, [], [])

    def compare(self, job: CodeJob) -> None:
        """Find the changes of one job and of the datasets that it writes."""
        now = self._now.get(job.id) or self._find_moved_job(job)
        process = find_job(job, self._catalog)
        if now is not None and is_same_work(job, now):
            return
        if process is not None and self._is_query(job, now, process):
            return
        if job.kind in _PROPERTIES and now is not None:
            self._compare_declared(job, now)
        for dataset in job.outputs:
            self._compare_output(job, now, dataset)
        if process is not None:
            self.found.rewritten[process.key] = self._rewrite(process, now)
        elif job.kind not in _PROPERTIES:
            detail = "no job in the catalog has this code"
            self._unread(job.path, 0, UnreadReason.UNKNOWN_JOB, detail)

    def _find_moved_job(self, job: CodeJob) -> CodeJob | None:
        """Return the new job with the outputs of a removed one: the job was moved."""
        heirs = [
            other
            for other in self._head.jobs
            if other.id not in self._known and job.outputs and other.outputs == job.outputs
        ]
        return heirs[0] if len(heirs) == 1 else None

    def _is_query(self, job: CodeJob, now: CodeJob | None, process: Job) -> bool:
        """Return whether a job only runs a query, which is compared as SQL."""
        if now is None or process.script is None or not (job.sql and now.sql):
            return False
        dialect = process.script.named_dialect
        scripts = [JobScript(text, dialect) for text in (job.sql, now.sql)]
        self.found.queries.append(QueryEdit(process._replace(path=now.path), *scripts))
        return True

    # Outputs

    def _compare_output(self, job: CodeJob, now: CodeJob | None, dataset: DatasetId) -> None:
        node = self._catalog.find_dataset(dataset)
        if node is None:
            return  # an unknown dataset has no known consumers
        name = self._catalog.dataset(node).id.name
        writer = self._writer_of(dataset, now)
        if writer is not None:
            difference = compare_definitions(
                write_definition(job, dataset), write_definition(writer, dataset)
            )
            self._propose(node, self._as_changes(name, node, difference))
        elif any(key not in self._edited for key in self._catalog.writers(node)):
            self._propose(node, [LogicChange(dataset=name)])
        elif now is not None and not _parts(now) <= _parts(job):
            self._propose(node, [LogicChange(dataset=name)])  # a new unknown part may write it
        else:
            self._propose(node, [TableDrop(dataset=name)])

    def _writer_of(self, dataset: DatasetId, now: CodeJob | None) -> CodeJob | None:
        jobs = [*([now] if now is not None else []), *self._head.jobs]
        return next((job for job in jobs if dataset in job.outputs), None)

    def _propose(self, node: int, changes: Iterable[Change]) -> None:
        self.found.changes.extend(ResolvedChange(change, node) for change in changes)

    def _as_changes(
        self, name: str, node: int, dataset_difference: DatasetDifference
    ) -> Iterator[Change]:
        """Yield the changes of columns that consumers can use."""
        known = {column.casefold() for column in self._catalog.known_columns(node)}

        def is_known(column: str) -> bool:
            return not known or column.casefold() in known

        for column, to in dataset_difference.renamed.items():
            if is_known(column) and to.casefold() not in known:
                yield ColumnRename(dataset=name, column=column, to=to)
            elif is_known(column):
                yield ColumnDrop(dataset=name, column=column)
        for column in filter(is_known, dataset_difference.lost):
            yield ColumnDrop(dataset=name, column=column)
        for column in dataset_difference.added:
            if column.casefold() not in known:
                yield ColumnAdd(dataset=name, column=column)
        if dataset_difference.rows:
            yield LogicChange(dataset=name)
        elif changed := list(filter(is_known, dataset_difference.changed)):
            yield LogicChange(dataset=name, columns=changed)

    def _compare_declared(self, job: CodeJob, now: CodeJob) -> None:
        """Compare listed columns: they are the schema of a table without a writer."""
        after = declared_columns(now)
        for dataset, columns in declared_columns(job).items():
            node = self._catalog.find_dataset(dataset)
            if node is None or dataset not in after or self._catalog.writers(node):
                continue  # a table that is no longer listed may still exist
            dropped, new = only_in(columns, after[dataset]), only_in(after[dataset], columns)
            renamed = dict(zip(dropped, new, strict=True)) if len(dropped) == len(new) == 1 else {}
            lost = [] if renamed else dropped
            difference = DatasetDifference(lost, renamed, [] if renamed else new, [], rows=False)
            name = self._catalog.dataset(node).id.name
            self._propose(node, self._as_changes(name, node, difference))

    # Identity

    def _rewrite(self, process: Job, now: CodeJob | None) -> Job:
        """Return a process as its new code has it."""
        if now is None:
            return process._replace(inputs=(), outputs=(), script=None, code=None, declared={})
        return process._replace(
            inputs=self._nodes(now.inputs),
            outputs=self._nodes(now.outputs),
            script=None,
            code=_code_of(now),
            path=now.path,
            declared=self._derives(now),
        )

    def _nodes(self, datasets: Iterable[DatasetId]) -> tuple[int, ...]:
        numbers = (self._catalog.find_dataset(dataset) for dataset in datasets)
        return tuple(dict.fromkeys(node for node in numbers if node is not None))

    def _derives(self, job: CodeJob) -> dict[int, list[JobColumnEdge]]:
        job_column_edges: dict[int, list[JobColumnEdge]] = {}
        for edge in job.edges:
            source = self._catalog.find_dataset(edge.source)
            target = self._catalog.find_dataset(edge.target)
            if source is not None and target is not None:
                made = JobColumnEdge(
                    edge.source_field,
                    target,
                    edge.target_field,
                    direct=edge.type == "DIRECT",
                    certain=edge.confidence != "ambiguous",
                )
                job_column_edges.setdefault(source, []).append(made)
        return job_column_edges

    # Unknown parts

    def note_unread(self) -> None:
        """Report the unread parts of either commit, and new code with run-time values."""
        for unread in self._base.unread:
            self._unread(unread.path, unread.line, UnreadReason.BASE_UNREAD, unread.detail)
        self.found.unread.extend(self._head.unread)
        before = {
            (job.id, spot.kind, spot.message) for job in self._base.jobs for spot in job.spots
        }
        for job in self._head.jobs:
            for spot in job.spots:
                if (job.id, spot.kind, spot.message) not in before:
                    self._unread(job.path, spot.line, UnreadReason.DYNAMIC_CODE, spot.message)

    def _unread(self, path: str, line: int, reason: UnreadReason, detail: str) -> None:
        unread = Unread(path=path, line=line, reason=reason, detail=detail)
        self.found.unread.append(unread)


def _parts(job: CodeJob) -> set[tuple[str, str]]:
    """Return the unknown parts of a job by kind and message."""
    return {(spot.kind, spot.message) for spot in job.spots}


def only_in(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """Return names that are in one list and not in another, in any letter case."""
    there = {name.casefold() for name in other}
    return [name for name in dict.fromkeys(one) if name.casefold() not in there]


def find_job(job: CodeJob, catalog: SimulationCatalog) -> Job | None:
    """Return the job of the catalog whose code a job was read from."""
    candidates = [
        (node, catalog.job(number))
        for number, node in catalog.nodes_named(short_name(job.id.name)).items()
        if isinstance(node, JobId)
    ]
    exact = [process for node, process in candidates if node == job.id]
    placed = [p for _, p in candidates if p.path and is_same_file(p.path, job.path)]
    return next(iter(exact or placed), None)


def _code_of(job: CodeJob) -> CodeFacet:
    return CodeFacet(
        path=job.path,
        line=job.line,
        references=[
            CodeReference(
                namespace=reference.dataset.namespace,
                name=reference.dataset.name,
                field=reference.field,
                line=reference.line,
                clause=reference.clause,
                conditional=reference.conditional,
                text=reference.text,
            )
            for reference in job.references
        ],
        raw=job.raw or "",
    )
