"""Reads a repository into jobs, file by file. Files that cannot be read are reported."""

from __future__ import annotations

import logging
import re
from functools import cache, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import msgspec

from downriver.capture.code import (
    CodeJob,
    DatasetNote,
    DocumentedColumn,
    render_dataset_note,
    render_job,
)
from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.capture.dataset_names import dataset_in_storage
from downriver.capture.scan.dataform import (
    SQLX,
    DataformFiles,
    DataformProject,
    find_dataform_project,
)
from downriver.capture.scan.dbt import (
    DbtProject,
    PropertyFile,
    find_projects,
    is_property_file,
    project_of,
)
from downriver.capture.scan.dbt.snapshots import list_yaml_snapshots
from downriver.capture.scan.feast_yaml import find_feast_project, has_features, read_features
from downriver.capture.scan.kedro_catalog import find_kedro_projects
from downriver.capture.scan.languages import find_unread_languages
from downriver.capture.scan.located_text import load_yaml
from downriver.capture.scan.python import (
    FileContext,
    FileText,
    PythonFile,
    PythonFiles,
    read_module,
)
from downriver.capture.scan.python.module import (
    NotebookError,
    convert_databricks,
    read_notebook,
)
from downriver.capture.scan.repository import REPLACEMENT, SQL_SUFFIXES, Repository, find_module
from downriver.capture.scan.sql_files import OWN_DATA, SqlFiles, sort_models
from downriver.capture.scan.sqlmesh import (
    SqlMeshFiles,
    SqlMeshProject,
    find_default_dialect,
    find_sqlmesh_project,
    is_external_models,
    is_sqlmesh,
)
from downriver.model.ids import DatasetId, JobId
from downriver.model.unread import Unread, UnreadReason
from downriver.reading_limits import (
    OutOfTimeError,
    Refusal,
    limited_reading,
    refusal_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.code import SourceRevision
    from downriver.openlineage.wire import Event


log = logging.getLogger("downriver")

_READER_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_VARIABLE = re.compile(r"[$&:{}()]")  # in a folder: `$(path)/`, `&dir/`
_IS_MODEL = re.compile(r"^def\s+model\s*\(\s*dbt\b", re.MULTILINE)


class ScanResult(msgspec.Struct, kw_only=True):
    """The jobs and dataset notes of a repository, and the files that could not be read."""

    files: int
    jobs: list[CodeJob] = []
    notes: list[DatasetNote] = []
    unread: list[Unread] = msgspec.field(default_factory=list, name="problems")  # its JSON key

    def events(self, at: int, revision: SourceRevision | None = None) -> Iterator[Event]:
        """Yield the jobs and dataset notes as events. `revision` is the commit of the code."""
        for note in self.notes:
            yield render_dataset_note(note, at)
        for job in self.jobs:
            yield render_job(job, at, revision=revision)


class ScanCatalog(msgspec.Struct, kw_only=True):
    """The ids that tables and jobs already have in the catalog.

    `find` returns the dataset of a table name, `columns_of` its columns. `job_at` returns the job
    of a dbt model by its file and name, `tests_of` the job of a table's tests, `exposure` the job
    and the dataset of an exposure. New ids are in `namespace`.
    """

    namespace: str
    job_at: Callable[[str, str], JobId | None] = lambda path, name: None
    tests_of: Callable[[DatasetId], JobId | None] = lambda dataset: None
    exposure: Callable[[str], tuple[JobId, DatasetId] | None] = lambda name: None
    find: Callable[[str], DatasetId | None] = lambda table: None
    columns_of: Callable[[DatasetId], list[str] | None] = lambda dataset: None
    dialect: str | None = None


def scan_repository(
    repository: Repository,
    names: ScanCatalog,
    *,
    only: list[str] | None = None,
    as_models: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ScanResult:
    """Read a repository, or `only` some of its files in the context of the others.

    With `as_models`, a query that writes no table is a model with the name of its file.
    """
    files = list(repository.files())
    scan = _Scan(repository, files, names, as_models=as_models)
    result = scan.read(files if only is None else only, progress)
    if only is None:
        result.unread += find_unread_languages(repository)
        result.unread += repository.unlisted()
    return result


def scan_text(path: str, text: str, names: ScanCatalog, *, as_models: bool = False) -> ScanResult:
    """Read one text. The suffix of its path decides the reader."""
    result = ScanResult(files=1)
    scan = _Scan(None, [], names, as_models=as_models)
    scan.read_one(path, text, result)
    return result


class _Scan:
    """Reads one repository."""

    def __init__(
        self,
        repository: Repository | None,
        files: list[str],
        names: ScanCatalog,
        *,
        as_models: bool,
    ) -> None:
        self._repository = repository
        self._as_models = as_models
        self._names = names
        self._projects: list[DbtProject] = []
        if repository is not None:
            self._projects = find_projects(repository, files, names.dialect)
        self._relations = _relations_by_name(self._projects)
        self._sql = SqlFiles(
            names.namespace, self._dataset_for, names.columns_of, names.dialect, self._reads_named
        )
        meshed = SqlMeshProject({}, {})
        if repository is not None:
            meshed = find_sqlmesh_project(repository, files)
        self._relations.update({name.casefold(): name for name in meshed.headers})
        self._sqlmesh = SqlMeshFiles(names.namespace, self._dataset_for, meshed)
        dataform = DataformProject({})
        if repository is not None:
            dataform = find_dataform_project(repository, files)
        qualified = {name: table for name, table in dataform.names.items() if "." in name}
        self._relations.update({name.casefold(): table for name, table in qualified.items()})
        self._dataform = DataformFiles(names.namespace, self._dataset_for, dataform)
        self._feast = find_feast_project(repository, files)
        self._kedro = find_kedro_projects(repository, files)
        self._files = frozenset(files)
        self._python = PythonFiles()
        self._find_module = cache(partial(find_module, self._files))
        self._imported: set[str] = set()
        self._followed: dict[str, set[range]] = {}  # lines of functions that other files call
        self._lookups = {p.root: self._dataset_in(p) for p in self._projects}

    def read(self, files: list[str], progress: Callable[[int, int], None]) -> ScanResult:
        result = ScanResult(files=len(files))
        for done, path in enumerate(self._ordered(files), 1):
            text = self._text(path, result)
            if text is not None:
                self.read_one(path, text, result)
            progress(done, len(files))
        run_by_tasks = {job.path for job in result.jobs if job.kind == "TASK"}
        result.jobs = [job for job in result.jobs if self._is_own(job, run_by_tasks)]
        return result

    def _is_own(self, job: CodeJob, run_by_tasks: set[str]) -> bool:
        """Return whether a job is independent.

        A SQL script that a task runs is part of the task. An imported module without reads and
        writes of its own is part of its importers: its blind spots belong to the modules that call
        its functions.
        """
        if job.kind != "SCRIPT":
            return True
        if job.path in self._imported and not job.inputs and not job.outputs:
            followed = self._followed.get(job.path, set())
            job.spots = [s for s in job.spots if not any(s.line in lines for lines in followed)]
            return bool(job.spots)
        return job.integration != "SQL" or job.path not in run_by_tasks

    def _dataset_for(self, table: str) -> DatasetId:
        """Return the dataset of a table name: from the catalog, from a model, or else a new one.

        The files of a model do not name its schema, so `analytics.orders` is the model `orders`.
        """
        folded = table.casefold()
        named = self._relations.get(folded) or self._relations.get(folded.rpartition(".")[2])
        return (
            self._names.find(table)
            or (self._names.find(named) if named else None)
            or dataset_in_storage(table)
            or DatasetId(self._names.namespace, named or table)
        )

    def _reads_named(self, name: str, beside: str) -> bool:
        """Return whether the scan reads the SQL file that a command of a script names.

        The directory in which scripts run is not known, and may be a variable.
        """
        *folders, file = name.split("/")
        variable = (at for at, folder in enumerate(folders, 1) if _VARIABLE.search(folder))
        known = "/".join([*folders[max(variable, default=0) :], file]).lstrip("./")
        ending = known if PurePosixPath(known).suffix else f"{known}.sql"
        is_there = any(f"/{path}".endswith(f"/{ending}") for path in self._files if path != beside)
        return is_there and PurePosixPath(ending).suffix.lower() in SQL_SUFFIXES

    def _dataset_in(self, project: DbtProject) -> Callable[[str], DatasetId]:
        """Return a lookup of table names in the SQL of a dbt project, by the rules of its dialect.

        The name is that of a relation of the project, or else resolved as in other code.
        """
        names = project.relation_names
        folded = {name.casefold() for name in names}

        def find(table: str) -> DatasetId:
            relation = table if table in names else project.find_relation(table)
            if relation is None and table.casefold() not in folded:
                return self._dataset_for(table)
            name = relation or table  # a table that only differs in letter case is another one
            return self._names.find(name) or DatasetId(self._names.namespace, name)

        return cache(find)

    def _text(self, path: str, result: ScanResult) -> str | None:
        assert self._repository is not None  # noqa: S101
        text = self._repository.read(path)
        if text is None or REPLACEMENT in text:
            unread = self._repository.check_readable(path)
            result.unread += [unread] if unread is not None else []
        return text

    def _ordered(self, files: list[str]) -> list[str]:
        """Return files in an order in which each dbt model comes after the models it refers to."""
        models = [p for p in files if p.endswith(".sql") and self._dbt_kind(p)[1] in OWN_DATA]
        texts = {p: (self._repository.read(p) or "") for p in models if self._repository}
        for project in self._projects:
            snapshots = project.yaml_snapshots
            texts.update((path, snapshots[path]) for path in files if path in snapshots)
        rest = [path for path in files if path not in texts]
        defined = {m.name: m.path for project in self._projects for m in project.all_models}
        return [*rest, *sort_models(texts, defined)]

    def _dbt_kind(self, path: str) -> tuple[DbtProject | None, str | None]:
        project = project_of(path, self._projects)
        return project, project.kind_of(path) if project is not None else None

    # One file

    def read_one(self, path: str, text: str, result: ScanResult) -> None:
        """Add the jobs and notes of a file to the result, or the reason why it cannot be read."""
        of_file = ScanResult(files=1)
        refusal = refusal_of(text)
        try:
            if refusal is None:
                with limited_reading(text):
                    self._read_into(path, text, of_file)
        except OutOfTimeError:
            refusal = Refusal.too_slow()
        except MemoryError:
            refusal = Refusal.too_large()
        if refusal is not None:
            of_file.unread.append(_unread(path, 0, refusal.reason, refusal.detail))
        result.jobs += [_plain(job) for job in of_file.jobs]
        result.notes += [_plain(note) for note in of_file.notes]
        result.unread += of_file.unread

    def _read_into(self, path: str, text: str, result: ScanResult) -> None:
        suffix = PurePosixPath(path).suffix.lower()
        line_of: Callable[[int], int] = lambda line: line  # noqa: E731
        try:
            if suffix in SQL_SUFFIXES:
                self._read_sql(path, text, result)
            elif suffix == SQLX:
                jobs, notes = self._dataform.read(path, text)
                result.jobs += jobs
                result.notes += notes
            elif suffix == ".py" and self._dbt_kind(path)[1] == "model":
                self._read_python_model(path, text, result)
            elif suffix == ".py":
                result.jobs += self._read_python(path, text)
            elif suffix == ".ipynb":
                notebook = read_notebook(text)
                line_of = notebook.line_of
                context = msgspec.structs.replace(self._context(path), line_of=line_of)
                result.jobs += read_module(PythonFile(path, notebook.source), context)
            else:
                self._read_yaml(path, text, result)
        except SyntaxError as exc:
            line = line_of(exc.lineno or 1)
            result.unread.append(_unread(path, line, UnreadReason.PYTHON_SYNTAX, exc.msg))
        except NotebookError as exc:
            result.unread.append(_unread(path, 0, UnreadReason.NOTEBOOK_SYNTAX, str(exc)))
        except YamlError as exc:
            result.unread.append(_unread(path, exc.line, UnreadReason.YAML_SYNTAX, exc.reason))
        except RecursionError:
            detail = "the code is nested too deeply"
            result.unread.append(_unread(path, 0, UnreadReason.TOO_DEEP, detail))
        except _READER_FAULTS as exc:  # one file must not end the scan of the others
            log.debug("reading %s failed", path, exc_info=True)
            detail = f"reading the file failed: {exc!r}"
            result.unread.append(_unread(path, 0, UnreadReason.READER_FAULT, detail))

    def _read_python(self, path: str, text: str) -> list[CodeJob]:
        file = self._python.find(path, convert_databricks(text))
        return read_module(file, self._context(path))

    def _source(self, path: str) -> str | None:
        text = None if self._repository is None else self._repository.read(path)
        return None if text is None else convert_databricks(text)

    def _context(self, path: str) -> FileContext:
        repository = self._repository

        def read_file(other: str) -> FileText | None:
            place = None if repository is None else repository.find_near(other, path)
            text = None if place is None or repository is None else repository.read(place)
            return None if place is None or text is None else FileText(place, text)

        def imported(name: str, level: int) -> PythonFile | None:
            place = self._find_module(name, level, PurePosixPath(path).parent)
            if place is None or place == path:
                return None
            self._imported.add(place)
            return self._python.get(place, lambda: self._source(place))

        return FileContext(
            namespace=self._names.namespace,
            dataset_for=self._dataset_for,
            columns_of=self._names.columns_of,
            read_file=read_file,
            find_module=imported,
            note_followed=lambda place, first, last: self._followed.setdefault(place, set()).add(
                range(first, last + 1)
            ),
            project=self._feast,
            kedro=self._kedro.catalog_of(path),
        )

    def _read_sql(self, path: str, text: str, result: ScanResult) -> None:
        project, kind = self._dbt_kind(path)
        if kind == "macro" or self._sqlmesh.is_macro(path):
            return
        if is_sqlmesh(text) and (project is None or kind is None):
            jobs = self._sqlmesh.read_sql(path, text, self._sqlmesh_dialect(path))
        else:
            jobs = self._read_query(path, text, project, kind)
        for job in jobs:
            if job.inputs or job.outputs or job.spots:
                result.jobs.append(job)
                result.notes += self._inferred_notes(job)

    def _read_query(
        self, path: str, text: str, project: DbtProject | None, kind: str | None
    ) -> list[CodeJob]:
        if project is not None and kind is not None:
            jobs = self._sql.read_dbt(path, text, project, kind, self._lookups[project.root])
            jobs[0].id = self._names.job_at(path, jobs[0].id.name) or jobs[0].id
            return jobs
        if self._as_models or ("{{" in text and ("ref(" in text or "source(" in text)):
            return self._sql.read_dbt(path, text, _NO_PROJECT, "model", self._dataset_for)
        return [self._sql.read_script(path, text)]

    def _sqlmesh_dialect(self, path: str) -> str:
        if self._names.dialect is not None or self._repository is None:
            return self._names.dialect or ""
        return find_default_dialect(self._repository, list(self._files), path)

    def _read_python_model(self, path: str, text: str, result: ScanResult) -> None:
        project = project_of(path, self._projects)
        if project is not None and _IS_MODEL.search(text):
            lookup = self._lookups[project.root]
            job = self._sql.read_python_model(path, text, project, lookup)
            job.id = self._names.job_at(path, job.id.name) or job.id
            result.jobs.append(job)
        else:
            result.jobs += self._read_python(path, text)

    def _inferred_notes(self, job: CodeJob) -> list[DatasetNote]:
        """Return the inferred columns of models whose columns are not in the catalog."""
        return [
            DatasetNote(id=target, columns=[DocumentedColumn(name) for name in columns])
            for target in job.outputs
            if (columns := self._sql.inferred_columns.get(target))
            and not self._names.columns_of(target)
        ]

    def _read_yaml(self, path: str, text: str, result: ScanResult) -> None:
        project, kind = self._dbt_kind(path)
        if is_external_models(path) and project is None:
            result.notes += self._sqlmesh.read_external_models(text)
            return
        if project is None and has_features(text):
            result.jobs += read_features(
                path, text, self._feast, self._names.namespace, self._dataset_for
            )
        is_settings = PurePosixPath(path).name in ("dbt_project.yml", "feature_store.yaml")
        if not is_settings and (project is None or kind is None):
            return  # YAML of other tools
        content = load_yaml(text)
        if project is None and PurePosixPath(path).name == "dbt_project.yml":
            load_values(text)  # raises the reason why the project could not be read
        if project is not None and PurePosixPath(path).name == "dbt_project.yml":
            lookup = self._lookups[project.root]
            result.jobs += self._sql.read_run_hooks(path, text, project, lookup)
        if project is not None and is_property_file(content):
            file = PropertyFile(
                path, content, self._names.namespace, self._lookups[project.root], project
            )
            result.jobs += file.jobs(self._names.tests_of, self._names.exposure)
            for sql in list_yaml_snapshots(content):
                lookup = self._lookups[project.root]
                result.jobs += self._sql.read_dbt(path, sql, project, "snapshot", lookup)
            result.notes += file.notes()


def _unread(path: str, line: int, reason: UnreadReason, detail: str) -> Unread:
    return Unread(path=path, line=line, reason=reason, detail=detail)


Found = TypeVar("Found", CodeJob, DatasetNote)


def _plain(value: Found) -> Found:
    """Return a copy with plain `str` in place of `LocatedText`."""
    return msgspec.convert(msgspec.to_builtins(value, enc_hook=str), type(value))


def _relations_by_name(projects: list[DbtProject]) -> dict[str, str]:
    """Return the relations of dbt projects by their names in lower case, for other code."""
    names = {name.casefold(): name for project in projects for name in project.names.values()}
    models = {
        model.table.casefold().rpartition(".")[2]: model.table
        for project in projects
        for model in project.models.values()
    }
    return {**models, **names}


_NO_PROJECT = DbtProject(root=".", name="", folders={}, variables={})
