"""What a piece of code is seen to do, written down job by job."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.code import CodeBlindSpot, CodeJob, ColumnReference
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.frames.frame import ColumnDependency, Frame
    from downriver.capture.scan.python.interpreter.values import LocatedText

_LONGEST_LINE = 200


class FileText(NamedTuple):
    """A file of the repository that code names."""

    path: str
    text: str


class FileContext(msgspec.Struct, kw_only=True):
    """What is known around a file: how tables are identified, their columns, other files."""

    namespace: str
    dataset_for: Callable[[str], DatasetId]
    columns_of: Callable[[DatasetId], list[str] | None] = lambda dataset: None
    read_file: Callable[[str], FileText | None] = lambda path: None
    find_module: Callable[[str, int], FileText | None] = lambda name, level: None
    project: str = "feast"
    line_of: Callable[[int], int] = lambda line: line


class JobRecorder:
    """Writes down what a file's jobs read, write and name."""

    def __init__(self, path: str, source: str, around: FileContext) -> None:
        self.path = path
        self.around = around
        self.jobs: list[CodeJob] = []
        self._lines = source.splitlines()
        self.framed: set[JobId] = set()  # jobs that do more with data than run queries
        self.queries: dict[JobId, list[LocatedText]] = {}
        self._guards: list[frozenset[str] | None] = []  # None guards every column
        self._clauses: list[Clause] = ["select"]
        self._called_at: int | None = None  # while code of another file is followed
        self.script = self.new_job(
            JobId(around.namespace, _script_name(path)), "PYTHON", "SCRIPT", 1
        )
        self.job = self.script

    def new_job(self, job: JobId, integration: str, kind: str, line: int) -> CodeJob:
        """Begin a job."""
        made = CodeJob(
            id=job, integration=integration, kind=kind, path=self.path,
            line=self.around.line_of(line),
        )  # fmt: skip
        self.jobs.append(made)
        return made

    @contextmanager
    def inside(self, job: CodeJob) -> Iterator[None]:
        """Write down what follows under another job."""
        before, self.job = self.job, job
        try:
            yield
        finally:
            self.job = before

    @contextmanager
    def clause(self, clause: Clause) -> Iterator[None]:
        """Say what columns are named for."""
        self._clauses.append(clause)
        try:
            yield
        finally:
            self._clauses.pop()

    @contextmanager
    def guarded(self, names: frozenset[str] | None) -> Iterator[None]:
        """Say that code which follows runs on when these columns are absent; None is any."""
        self._guards.append(names)
        try:
            yield
        finally:
            self._guards.pop()

    @contextmanager
    def elsewhere(self, line: int) -> Iterator[None]:
        """Say that what follows is in another file, called from this line of ours."""
        before = self._called_at
        self._called_at = line if before is None else before
        try:
            yield
        finally:
            self._called_at = before

    # What was seen

    def reads(self, dataset: DatasetId) -> None:
        """Note an input."""
        self.job.reads(dataset)

    def writes(self, dataset: DatasetId, frame: Frame | None) -> None:
        """Note an output, made of a frame."""
        self.job.writes(dataset)
        if frame is not None:
            self.framed.add(self.job.id)
            for source in frame.datasets():
                self.job.reads(source)
            self.job.edges.extend(frame.edges(dataset))
            self.job.written.append(frame.written_to(dataset))

    def names_column(
        self,
        frame: Frame,
        name: str,
        line: int,
        *,
        clause: Clause | None = None,
        maybe: bool = False,
    ) -> None:
        """Note that a column is named; what is made here has no reference to elsewhere."""
        for origin in frame.origins(name):
            self.refers(origin, line, clause or self._clauses[-1], maybe=maybe)

    def refers(
        self, origin: ColumnDependency, line: int, clause: Clause, *, maybe: bool = False
    ) -> None:
        """Note a reference to a column of a dataset."""
        line = self._called_at or line
        self.job.refers(
            ColumnReference(
                dataset=origin.dataset,
                field=origin.field,
                line=self.around.line_of(line),
                clause=clause,
                conditional=maybe or self._is_guarded(origin.field),
                text=self.text(line),
            )
        )

    def cannot_see(self, kind: str, message: str, line: int) -> None:
        """Note a blind spot."""
        self.job.cannot_see(
            CodeBlindSpot(kind, message, self.around.line_of(self._called_at or line))
        )

    def text(self, line: int) -> str:
        """Return a line of the source."""
        return self._lines[line - 1].strip()[:_LONGEST_LINE] if line <= len(self._lines) else ""

    def _is_guarded(self, field: str) -> bool:
        return any(names is None or field.casefold() in names for names in self._guards)


def _script_name(path: str) -> str:
    return path.rpartition(".")[0] or path
