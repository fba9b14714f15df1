"""Records the inputs, outputs and references of the jobs in one file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.code import CodeJob, ColumnReference
from downriver.capture.scan.kedro_catalog import KedroCatalog
from downriver.capture.scan.python.io_calls import line_of_call
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.located_text import LocatedText
    from downriver.capture.scan.python.frames.frame import Frame
    from downriver.capture.scan.python.source_files import PythonFile

_LONGEST_LINE = 200


class FileText(NamedTuple):
    """A file of the repository that another file names."""

    path: str
    text: str


class FileContext(msgspec.Struct, kw_only=True):
    """The context of a file: ids and columns of tables, and other files of the repository.

    `note_followed` gets the lines of each function of another file that the file calls.
    """

    namespace: str
    dataset_for: Callable[[str], DatasetId]
    columns_of: Callable[[DatasetId], list[str] | None] = lambda dataset: None
    read_file: Callable[[str], FileText | None] = lambda path: None
    find_module: Callable[[str, int], PythonFile | None] = lambda name, level: None
    note_followed: Callable[[str, int, int], None] = lambda path, first, last: None
    project: str = "feast"
    kedro: KedroCatalog = KedroCatalog({}, {})
    line_of: Callable[[int], int] = lambda line: line


class JobRecorder:
    """Records what the jobs of one file read, write and reference."""

    def __init__(self, path: str, source: str, context: FileContext) -> None:
        self.path = path
        self.context = context
        self.jobs: list[CodeJob] = []
        self._lines = source.splitlines()
        self.framed: set[JobId] = set()  # jobs that use data frames and not only queries
        self.queries: dict[JobId, list[LocatedText]] = {}
        self._guards: list[frozenset[str] | None] = []  # None stands for every column
        self._clauses: list[Clause] = ["select"]
        self._called_at: int | None = None  # set while code of another file is followed
        self._calls: list[ast.Call] = []  # the innermost last
        self._understood: set[ast.Call] = set()
        self._unknown_rows: dict[JobId, list[tuple[CodeJob, DatasetId, int]]] = {}
        self.script = self.new_job(
            JobId(context.namespace, _script_name(path)), "PYTHON", "SCRIPT", 1
        )
        self.job = self.script

    def new_job(self, job_id: JobId, integration: str, kind: str, line: int) -> CodeJob:
        """Add a job."""
        job = CodeJob(
            id=job_id, integration=integration, kind=kind, path=self.path,
            line=self.context.line_of(line),
        )  # fmt: skip
        self.jobs.append(job)
        return job

    @contextmanager
    def inside(self, job: CodeJob) -> Iterator[None]:
        """Record in another job."""
        before, self.job = self.job, job
        try:
            yield
        finally:
            self.job = before

    @contextmanager
    def clause(self, clause: Clause) -> Iterator[None]:
        """Record references with this clause."""
        self._clauses.append(clause)
        try:
            yield
        finally:
            self._clauses.pop()

    @contextmanager
    def guarded(self, names: frozenset[str] | None) -> Iterator[None]:
        """Record references to these columns as conditional; None stands for all columns."""
        self._guards.append(names)
        try:
            yield
        finally:
            self._guards.pop()

    @contextmanager
    def called_from(self, line: int) -> Iterator[None]:
        """Record with the line of this file that calls code of another file."""
        before = self._called_at
        self._called_at = line if before is None else before
        try:
            yield
        finally:
            self._called_at = before

    @property
    def is_in_other_file(self) -> bool:
        """Whether code of another file is followed."""
        return self._called_at is not None

    @contextmanager
    def following(self, call: ast.Call) -> Iterator[None]:
        """Record as part of a call."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.pop()

    def understand(self) -> None:
        """Record that the lineage of the innermost call is complete."""
        if self._calls:
            self._understood.add(self._calls[-1])

    def is_understood(self, call: ast.Call) -> bool:
        """Whether the lineage of a call is recorded, as datasets or as a blind spot."""
        return call in self._understood

    # Records

    def add_input(self, dataset: DatasetId) -> None:
        """Record an input."""
        self.understand()
        self.job.add_input(dataset)

    def add_output(self, dataset: DatasetId, frame: Frame | None) -> None:
        """Record an output that a frame is written to."""
        self.understand()
        self.job.add_output(dataset)
        if frame is not None:
            self.framed.add(self.job.id)
            if not frame.is_known:
                line = line_of_call(self._calls[-1]) if self._calls else 1
                self._unknown_rows.setdefault(self.job.id, []).append((self.job, dataset, line))
            for source in frame.datasets():
                self.job.add_input(source)
            self.job.edges.extend(frame.edges(dataset))
            self.job.written.append(frame.output_shape(dataset))

    def reference_column(
        self,
        frame: Frame,
        name: str,
        line: int,
        *,
        clause: Clause | None = None,
        optional: bool = False,
    ) -> None:
        """Record references to the source columns of a frame's column.

        A column that this code computes has no source column of that name, so there is no
        reference.
        """
        for dataset, field in frame.origins(name):
            self.add_reference(dataset, field, line, clause or self._clauses[-1], optional=optional)

    def add_reference(
        self, dataset: DatasetId, field: str, line: int, clause: Clause, *, optional: bool = False
    ) -> None:
        """Record a reference to a column of a dataset."""
        line = self._called_at or line
        self.job.add_reference(
            ColumnReference(
                dataset=dataset,
                field=field,
                line=self.context.line_of(line),
                clause=clause,
                conditional=optional or self._is_guarded(field),
                text=self.text(line),
            )
        )

    def add_blind_spot(self, kind: str, message: str, line: int) -> None:
        """Record a part of the code whose lineage is unknown."""
        self.understand()
        self.job.add_blind_spot(
            BlindSpotEntry(kind, message, self.context.line_of(self._called_at or line))
        )

    def report_unknown_rows(self) -> None:
        """Add a blind spot for each output of unknown rows, unless another one explains it.

        Called once, after the file is followed.
        """
        for outputs in self._unknown_rows.values():
            if outputs[0][0].spots:
                continue
            for job, dataset, line in outputs:
                with self.inside(job):
                    self.add_blind_spot(
                        "unknown_rows",
                        f"a part of the data written to {dataset.name} comes from code that "
                        "cannot be understood",
                        line,
                    )

    def text(self, line: int) -> str:
        """Return a line of the source."""
        return self._lines[line - 1].strip()[:_LONGEST_LINE] if line <= len(self._lines) else ""

    def _is_guarded(self, field: str) -> bool:
        return any(names is None or field.casefold() in names for names in self._guards)


def _script_name(path: str) -> str:
    return path.rpartition(".")[0] or path
