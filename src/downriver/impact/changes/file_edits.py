"""Maps edited files to the jobs of the catalog and to the changes that the edits make."""

from __future__ import annotations

import csv
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.code.yaml_documents import YamlError, compose_documents
from downriver.capture.scan.python.module import NotebookError, read_notebook
from downriver.impact.changes.code_edits import (
    CodeEdits,
    compare_code,
    is_same_file,
    list_edited_jobs,
)
from downriver.impact.changes.data_files import unread_data
from downriver.impact.changes.migrations.ddl import DdlReading, read_ddl
from downriver.impact.changes.migrations.ddl_effect import mentions_ddl
from downriver.impact.changes.migrations.migration_code import read_other, read_python
from downriver.impact.changes.migrations.table_definitions import (
    DefinitionEdit,
    LocatedChange,
    compare_definitions,
)
from downriver.impact.simulate.delta import Delta, DeltaKind, ResolvedChange
from downriver.impact.simulate.script.bound_script import BoundScript
from downriver.impact.simulate.script.job_script import JobScript
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    TableDrop,
    TypeChange,
    with_dataset,
)
from downriver.model.ids import DatasetId, JobId, short_name
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.impact.changes.commits import FilePair
    from downriver.impact.changes.dbt.names import BrokenReference
    from downriver.impact.changes.edited_code import EditedCode
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.process import Job, JobKey
    from downriver.openlineage.facets.custom import BuildFacet


def compare_seed(pair: FilePair, catalog: SimulationCatalog) -> Iterator[ResolvedChange]:
    """Yield the changes of an edited seed; a new one has no consumers."""
    nodes = catalog.nodes_named(PurePosixPath(pair.path).stem)
    for node in {catalog.canonical(n) for n, name in nodes.items() if isinstance(name, DatasetId)}:
        if pair.base is not None:
            known = {column.casefold() for column in catalog.known_columns(node)}
            for change in _changes(catalog.dataset(node).id.name, pair, known):
                yield ResolvedChange(change, node)


def _changes(name: str, pair: FilePair, known: set[str]) -> Iterator[Change]:
    if pair.head is None:
        yield TableDrop(dataset=name)
        return
    before, after = _header(pair.base or ""), _header(pair.head)
    dropped = [c for c in before if c not in after and (not known or c.casefold() in known)]
    new = [c for c in after if c not in before and c.casefold() not in known]
    if len(dropped) == len(new) == 1 and len(before) == len(after):
        yield ColumnRename(dataset=name, column=dropped[0], to=new[0])
    else:
        yield from (ColumnDrop(dataset=name, column=column) for column in dropped)
        yield from (ColumnAdd(dataset=name, column=column) for column in new)
    if _rows(pair.base or "") != _rows(pair.head):
        yield LogicChange(dataset=name)


def _header(text: str) -> list[str]:
    return next(csv.reader(text.splitlines()), [])


def _rows(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()[1:] if line.strip()]


class ScriptEdit(NamedTuple):
    """A process's SQL before and after."""

    process: Job
    base: JobScript
    head: JobScript
    build: BuildFacet | None = None  # at head, if it is known
    is_indirect: bool = False  # its own file is not edited, but a macro or setting it uses

    def reading(self, catalog: SimulationCatalog) -> BoundScript:
        """Return the meaning of the SQL before the edit."""
        return BoundScript(self.process._replace(script=self.base), self.base, catalog)


class FileEdits(NamedTuple):
    """The result of the files of two commits: edited processes, changes, and unread parts.

    `replaced` are tables that a file creates again: a change only where the catalog has them.
    `errors` are the jobs that dbt can no longer compile. `definitions` are the tables whose columns
    the files list.
    """

    by_process: dict[JobKey, ScriptEdit]
    changes: list[LocatedChange]
    replaced: list[LocatedChange]
    unread: list[Unread]
    proposed: list[ResolvedChange]
    rewritten: dict[JobKey, Job]
    errors: dict[JobKey, BrokenReference]
    definitions: list[DefinitionEdit]

    @classmethod
    def empty(cls, unread: Iterable[Unread] = ()) -> FileEdits:
        """Return edits without content."""
        return cls({}, [], [], list(unread), [], {}, {}, [])

    def take_ddl(self, ddl: DdlReading) -> None:
        """Add the changes that a file makes, and the tables that it defines."""
        self.changes.extend(ddl.changes)
        self.replaced.extend(ddl.replaced)
        self.definitions.append(ddl.definitions)


def find_edits(
    pairs: Iterable[FilePair], catalog: SimulationCatalog, code: EditedCode
) -> FileEdits:
    """Match files with the jobs that they define. A new job has no consumers yet.

    SQL is compared query by query; `code` is what the scanner read in all other code.
    """
    found = FileEdits.empty(code.unread)
    pairs = list(pairs)
    edited = {pair.path for pair in pairs}
    for pair, old_path in _join_moved_files(code.queries):
        process = next(_jobs(old_path, catalog, code), None)
        if process is not None:
            _add_job_edit(pair, process, found, is_indirect=pair.path not in edited)
        else:
            _add_migration(pair, found)
    for pair in pairs:
        _take_other(pair, code, catalog, found)
    found.changes.extend(compare_definitions(found.definitions))
    _add_code_edits(compare_code(code.base, code.head, catalog), found)
    _add_settings(code, catalog, found)
    _take_broken(code, catalog, found)
    return found


def _add_settings(code: EditedCode, catalog: SimulationCatalog, found: FileEdits) -> None:
    """Add the builds and changes that follow from edited dbt settings."""
    for path, build in code.settings.builds.items():
        process = next(_jobs(path, catalog, code), None)
        if process is None or process.script is None:
            continue
        edit = found.by_process.get(process.key) or ScriptEdit(
            process, process.script, process.script, is_indirect=True
        )
        found.by_process[process.key] = edit._replace(build=build)
    for path, change in code.settings.changes:
        for process in _jobs(path, catalog, code):
            for node in process.outputs:
                named = with_dataset(change, catalog.dataset(node).id.name)
                found.proposed.append(ResolvedChange(named, node))
    for dataset in code.definitions:
        known = catalog.find_dataset(dataset)
        if known is not None:
            found.proposed.append(ResolvedChange(LogicChange(dataset=dataset.name), known))


def _take_broken(code: EditedCode, catalog: SimulationCatalog, found: FileEdits) -> None:
    for broken in code.broken:
        process = next(_jobs(broken.path, catalog, code), None)
        if process is not None and broken.certain:
            found.errors[process.key] = broken
        else:
            reason = UnreadReason.DYNAMIC_CODE
            found.unread.append(
                Unread(path=broken.path, line=broken.line, reason=reason, detail=broken.reason)
            )


def _join_moved_files(pairs: list[FilePair]) -> Iterator[tuple[FilePair, str]]:
    """Yield files with the path they had before. A moved file is one file, not two."""
    deleted = {(p.base or "").strip(): p for p in pairs if p.head is None and p.base}
    moved: set[str] = set()
    for pair in pairs:
        origin = deleted.get((pair.head or "").strip()) if pair.base is None else None
        if origin is not None and origin.path not in moved and _is_same_job(pair, origin):
            moved.add(origin.path)
            yield pair._replace(base=origin.base), origin.path
        elif pair.base is None:
            yield pair, pair.path
    yield from ((p, p.path) for p in pairs if p.base is not None and p.path not in moved)


def _is_same_job(pair: FilePair, origin: FilePair) -> bool:
    """Return whether a file is the job's code.

    A query without a target, such as a dbt model, fills a table with the name of its file.
    """
    stems = {PurePosixPath(one.path).stem for one in (pair, origin)}
    return len(stems) == 1 or _WRITES.search(pair.head or "") is not None


_WRITES = re.compile(
    r"\b(?:create|insert|merge|update|delete|replace|overwrite|copy)\b", re.IGNORECASE
)


def _add_code_edits(code: CodeEdits, found: FileEdits) -> None:
    for process, base, head in code.queries:
        found.by_process[process.key] = ScriptEdit(process, base, head)
    found.proposed.extend(code.changes)
    found.rewritten.update(code.rewritten)
    found.unread.extend(code.unread)


def _add_job_edit(pair: FilePair, process: Job, found: FileEdits, *, is_indirect: bool) -> None:
    """Compare the code of a job. DDL on tables other than its outputs is a change as well."""
    named = process.script.named_dialect if process.script is not None else None
    base, head = (JobScript(text or "", named) for text in (pair.base, pair.head))
    found.by_process[process.key] = ScriptEdit(
        process._replace(path=pair.path, code=None), base, head, is_indirect=is_indirect
    )
    ddl = _read_sql(pair, named, found)
    found.take_ddl(ddl._replace(replaced=[]))  # the tables that a job replaces are its outputs


def _add_migration(pair: FilePair, found: FileEdits) -> None:
    """Read a file that belongs to no job: it may be a migration."""
    found.take_ddl(_read_sql(pair, None, found))
    if pair.base is not None:
        reason = UnreadReason.UNKNOWN_JOB
        detail = "no job in the catalog has this code"
        found.unread.append(Unread(path=pair.path, line=0, reason=reason, detail=detail))


def _read_sql(pair: FilePair, dialect: str | None, found: FileEdits) -> DdlReading:
    """Return what the new statements of a file alter, and note what could not be read."""
    before, after = pair.base or "", pair.head or ""
    ddl = read_ddl(after, dialect, path=pair.path, before=before)
    found.unread.extend(_weaken(unread, after) for unread in ddl.unread)
    removed = read_ddl(before, dialect, path=pair.path, before=after)
    for unread in removed.unread[:1]:
        found.unread.append(msgspec.structs.replace(unread, reason=UnreadReason.BASE_UNREAD))
    return ddl


_QUERY = re.compile(r"(?:[\s(]|--[^\n]*\n)*(?:select|with)\b", re.IGNORECASE)


def _weaken(unread: Unread, text: str) -> Unread:
    """Weaken the blind spot of a query that cannot be read: it does not alter a table."""
    if mentions_ddl(text):
        return unread
    if unread.reason is UnreadReason.TEMPLATE and "select" in text.casefold():
        return msgspec.structs.replace(unread, reason=UnreadReason.DYNAMIC_CODE)
    if unread.reason is UnreadReason.SQL_SYNTAX and _QUERY.match(unread.detail):
        return msgspec.structs.replace(unread, reason=UnreadReason.QUERY_SYNTAX)
    return unread


# Files of other types

_SQL_LIKE = (
    ".ddl", ".hql", ".psql", ".pgsql", ".tsql", ".mysql", ".plsql", ".sql.j2", ".sql.jinja",
    ".sql.jinja2", ".sql.tmpl", ".sql.tpl", ".sql.template", ".sql.erb", ".sql.mustache",
)  # fmt: skip


def _take_other(
    pair: FilePair, code: EditedCode, catalog: SimulationCatalog, found: FileEdits
) -> None:
    if pair.is_type(".csv"):
        found.proposed.extend(compare_seed(pair, catalog))
        is_seed = code.job_names.get(pair.path) or "seeds" in PurePosixPath(pair.path).parts
        if not is_seed and not catalog.nodes_named(PurePosixPath(pair.path).stem):
            found.unread.append(unread_data(pair.path))
    elif pair in code.macros:
        found.unread.extend(
            msgspec.structs.replace(unread, reason=UnreadReason.TEMPLATE)
            for unread in read_other(pair.path, pair.base, pair.head or "")
        )
    elif pair.is_type(".py", ".ipynb"):
        _take_migration_code(pair, found)
    elif pair.is_type(*_SQL_LIKE):
        _add_migration(pair._replace(base=pair.base), found)
    elif not pair.is_type(".sql"):
        found.unread.extend(read_other(pair.path, pair.base, pair.head or ""))
        if pair.is_type(".yml", ".yaml") and pair.head is not None:
            _check_yaml(pair, code, found)


def _take_migration_code(pair: FilePair, found: FileEdits) -> None:
    if pair.head is None:
        return
    base, head = (_python_of(pair, text) for text in (pair.base, pair.head))
    if head is not None:
        ddl = read_python(pair.path, base, head)
        found.take_ddl(ddl)
        found.unread.extend(ddl.unread)


def _python_of(pair: FilePair, text: str | None) -> str | None:
    """Return the Python code of a file. The scanner reports an invalid notebook."""
    if text is None or not pair.is_type(".ipynb"):
        return text
    try:
        return read_notebook(text).source
    except NotebookError:
        return None


def _check_yaml(pair: FilePair, code: EditedCode, found: FileEdits) -> None:
    """Report YAML that does not parse, unless it is a template or was reported already."""
    text = pair.head or ""
    if "{{" in text or any(unread.path == pair.path for unread in code.head.unread):
        return
    try:
        compose_documents(text)
    except YamlError as exc:
        reason = UnreadReason.YAML_SYNTAX
        unread = Unread(path=pair.path, line=exc.line, reason=reason, detail=exc.reason)
        found.unread.append(unread)


def list_tables(pairs: Iterable[FilePair], code: EditedCode) -> set[str]:
    """Return the short names of the tables that edits may change, other than by dbt models."""
    jobs = list_edited_jobs(code.base, code.head)
    names = [dataset.name for job in jobs for dataset in job.outputs]
    names += [reference.dataset.name for job in jobs for reference in job.references]
    found = FileEdits.empty()
    for pair in pairs:
        if pair.is_type(".csv"):
            names.append(PurePosixPath(pair.path).stem)
        elif pair.is_type(".py", ".ipynb"):
            _take_migration_code(pair, found)
        elif pair.is_type(".sql", *_SQL_LIKE) and pair not in code.macros:
            _add_migration(pair, found)
    located = (*found.changes, *found.replaced, *compare_definitions(found.definitions))
    names += [one.change.dataset for one in located]
    names += [dataset.name for dataset in code.definitions]
    return {short_name(name) for name in names}


def _jobs(path: str, catalog: SimulationCatalog, code: EditedCode) -> Iterator[Job]:
    """Yield the jobs of a file. They have its name, or the names of the dbt models in it."""
    candidates = [
        catalog.job(number)
        for name in sorted({PurePosixPath(path).stem, *code.job_names.get(path, ())})
        for number, node in catalog.nodes_named(name).items()
        if isinstance(node, JobId)
    ]
    exact = [p for p in candidates if p.path and is_same_file(p.path, path)]
    yield from exact or [p for p in candidates if not p.path]


def changes_from_delta(dataset: str, delta: Delta) -> Iterator[Change]:
    """Return a difference between two states of a dataset as a list of changes."""
    if delta.removed is not None:
        yield TableDrop(dataset=dataset)
    changed = []
    for (column, kind), touch in delta.touches.items():
        match kind:
            case DeltaKind.LOST:
                yield ColumnDrop(dataset=dataset, column=column)
            case DeltaKind.RENAMED:
                yield ColumnRename(dataset=dataset, column=column, to=touch.to)
            case DeltaKind.ADDED:
                yield ColumnAdd(dataset=dataset, column=column, data_type=touch.to)
            case DeltaKind.RETYPED:
                yield TypeChange(dataset=dataset, column=column, to=touch.to)
            case _:
                changed.append(column)
    if delta.rows is not None:
        yield LogicChange(dataset=dataset)
    elif changed:
        yield LogicChange(dataset=dataset, columns=sorted(changed))
