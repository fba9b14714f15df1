"""dbt projects that were not compiled: names, macros, variables and property files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code import CodeJob, ColumnReference, DatasetNote, DocumentedColumn
from downriver.capture.code.dbt_build import build_settings, inline_config, project_config
from downriver.capture.code.dbt_resources import (
    entries,
    find_resource,
    is_true,
    items,
    list_owners,
    list_tags,
    mapping,
    text,
    texts,
)
from downriver.capture.scan.located_text import LocatedText, YamlError, load_yaml
from downriver.capture.sql import Template
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.repository import Repository
    from downriver.openlineage.facets.custom import BuildFacet

_FOLDERS = {
    "model": ("model-paths", "source-paths", "models"),
    "snapshot": ("snapshot-paths", "", "snapshots"),
    "test": ("test-paths", "", "tests"),
    "analysis": ("analysis-paths", "", "analyses"),
    "macro": ("macro-paths", "", "macros"),
}
_SNAPSHOT = re.compile(r"\{%-?\s*snapshot\s+(\w+)")
_ALIAS = re.compile(r"\balias\s*=\s*['\"](\w+)['\"]")


class DbtProject(msgspec.Struct, kw_only=True):
    """A project's folders, variables, macros and names, from its own files."""

    root: str
    name: str
    folders: dict[str, list[str]]
    variables: dict[str, Any]
    macros: tuple[str, ...] = ()
    names: dict[str, str] = {}
    models: list[str] = []
    configs: dict[str, Any] = {}  # by kind, as dbt_project.yml has them
    properties: dict[str, dict[str, Any]] = {}  # of models and snapshots, by name

    def kind_of(self, path: str) -> str | None:
        """Return the kind of a file: model, snapshot, test, analysis or macro, else None."""
        inside = PurePosixPath(path)
        for kind, folders in self.folders.items():
            for folder in folders:
                if inside.is_relative_to(PurePosixPath(self.root) / folder):
                    return kind
        return None

    def build_of(self, path: str, name: str, sql: str) -> BuildFacet:
        """Return how a model or snapshot is built."""
        kind = self.kind_of(path) or "model"
        entry = self.properties.get(name, {})
        of_project = project_config(self.configs.get(kind), self.name, self._subfolders(path, kind))
        return build_settings([inline_config(sql), mapping(entry.get("config")), of_project], entry)

    def _subfolders(self, path: str, kind: str) -> list[str]:
        """Return the folders between the folder of a kind and a file, and the file's name."""
        inside = PurePosixPath(path)
        for folder in self.folders.get(kind, ()):
            root = PurePosixPath(self.root) / folder
            if inside.is_relative_to(root):
                return list(inside.relative_to(root).with_suffix("").parts)
        return []

    def template(self, this: str) -> Template:
        """Return the names, variables and macros for a template; `this` is its table."""
        return Template(this=this, names=self.names, variables=self.variables, macros=self.macros)


def find_projects(repository: Repository, files: list[str]) -> list[DbtProject]:
    """Return the dbt projects among files, the innermost first."""
    projects = []
    for path in files:
        if PurePosixPath(path).name == "dbt_project.yml":
            project = _read_project(repository, path)
            if project is not None:
                projects.append(project)
    for project in projects:
        _read_names(project, repository, files)
    return sorted(projects, key=lambda project: -len(project.root))


def project_of(path: str, projects: list[DbtProject]) -> DbtProject | None:
    """Return the project of a file."""
    return next((p for p in projects if PurePosixPath(path).is_relative_to(p.root)), None)


def _read_project(repository: Repository, path: str) -> DbtProject | None:
    text = repository.read(path)
    try:
        content = load_yaml(text) if text is not None else None
    except YamlError:
        return None  # reported when the file itself is read
    if not isinstance(content, dict):
        return None
    folders = {
        kind: [str(p) for p in content.get(key) or content.get(old) or [default]]
        for kind, (key, old, default) in _FOLDERS.items()
    }
    variables = content.get("vars")
    known = dict(variables) if isinstance(variables, dict) else {}
    own = known.get(content.get("name", ""))
    if isinstance(own, dict):
        known.update(own)
    return DbtProject(
        root=PurePosixPath(path).parent.as_posix(),
        name=str(content.get("name", "")),
        folders=folders,
        variables={str(k): v for k, v in known.items() if not isinstance(v, dict)},
        configs={"model": content.get("models"), "snapshot": content.get("snapshots")},
    )


def _read_names(project: DbtProject, repository: Repository, files: list[str]) -> None:
    """Read the macros of a project and the names of its sources and models."""
    macros: list[str] = []
    for path in files:
        if not PurePosixPath(path).is_relative_to(project.root):
            continue
        suffix, kind = PurePosixPath(path).suffix, project.kind_of(path)
        if suffix == ".sql" and kind == "macro":
            macros.append(repository.read(path) or "")
        elif suffix == ".sql" and kind in ("model", "snapshot"):
            name, table = model_names(path, repository.read(path) or "")
            project.models.append(table)
            if name != table:
                project.names[name] = table
        elif suffix in (".yml", ".yaml") and kind is not None:
            content = _load_properties(repository.read(path) or "")
            project.names.update(_source_names(content))
            project.properties.update(_model_entries(content))
    project.macros = tuple(macros)


def model_names(path: str, sql: str) -> tuple[str, str]:
    """Return the name of a model or snapshot in `ref`, and the name of its table."""
    snapshot = _SNAPSHOT.search(sql)
    name = snapshot[1] if snapshot else PurePosixPath(path).stem
    alias = _ALIAS.search(sql)
    return name, alias[1] if alias else name


def _load_properties(text: str) -> dict[str, Any]:
    try:
        return mapping(load_yaml(text))
    except YamlError:
        return {}  # reported when the file itself is read


def _model_entries(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        str(entry["name"]): entry
        for kind in ("models", "snapshots")
        for entry in entries(content.get(kind))
        if text(entry.get("name"))
    }


def _source_names(content: dict[str, Any]) -> dict[str, str]:
    tables: dict[str, str] = {}
    for source in entries(content.get("sources")):
        tables.update(source_tables(source))
    return tables


def source_tables(source: dict[str, Any]) -> dict[str, str]:
    """Return the tables of a source, by `name.table` of `source('name', 'table')`."""
    name = str(source.get("name", ""))
    place = [source.get("database"), source.get("schema") or name]
    parts = [str(part) for part in place if isinstance(part, str) and "{{" not in part]
    return {
        f"{name}.{table['name']}": ".".join([*parts, str(table.get("identifier", table["name"]))])
        for table in entries(source.get("tables"))
        if text(table.get("name"))
    }


_KINDS = ("models", "seeds", "snapshots")


class PropertyFile:
    """One property file of a dbt project."""

    def __init__(
        self,
        path: str,
        content: dict[str, Any],
        namespace: str,
        dataset_for: Callable[[str], DatasetId],
        names: dict[str, str],
    ) -> None:
        self._path = path
        self._content = content
        self._namespace = namespace
        self._dataset_for = dataset_for
        self._names = names

    def jobs(
        self,
        tests_of: Callable[[DatasetId], JobId | None],
        exposed: Callable[[str], tuple[JobId, DatasetId] | None],
    ) -> Iterator[CodeJob]:
        """Yield one job for the tests and documentation of the file, and one for each exposure.

        Tests of a table are put into the job that the catalog has for them, if there is one.
        """
        own = JobId(self._namespace, self._path.rpartition(".")[0])
        jobs: dict[JobId, CodeJob] = {}
        for dataset, entry in self._tables():
            key = (tests_of(dataset) if _has_tests(entry) else None) or own
            if key not in jobs:
                kind = "PROPERTIES" if key == own else "TEST"
                jobs[key] = CodeJob(id=key, integration="DBT", kind=kind, path=self._path)
            self._add_references(jobs[key], dataset, entry)
        yield from (job for job in jobs.values() if job.references)
        for exposure in entries(self._content.get("exposures")):
            yield self._exposure(exposure, exposed(text(exposure.get("name"))))

    def notes(self) -> Iterator[DatasetNote]:
        """Yield the documentation of tables."""
        for dataset, entry in self._tables():
            columns = [
                DocumentedColumn(
                    str(c["name"]), text(c.get("data_type")), text(c.get("description"))
                )
                for c in entries(entry.get("columns"))
                if isinstance(c.get("name"), str)
            ]
            note = DatasetNote(
                id=dataset,
                columns=columns if _is_complete(entry) else [],
                description=text(entry.get("description")),
                owners=list_owners(entry),
                tags=list_tags(entry),
            )
            if note.columns or note.description or note.owners or note.tags:
                yield note

    def _tables(self) -> Iterator[tuple[DatasetId, dict[str, Any]]]:
        for kind in _KINDS:
            for entry in entries(self._content.get(kind)):
                name = text(entry.get("name"))
                if name:
                    yield self._dataset_for(self._names.get(name, name)), entry
        for source in entries(self._content.get("sources")):
            tables = source_tables(source)
            for table in entries(source.get("tables")):
                key = f"{source.get('name')}.{table.get('name')}"
                if key in tables:
                    yield self._dataset_for(tables[key]), table

    def _add_references(self, job: CodeJob, dataset: DatasetId, entry: dict[str, Any]) -> None:
        for column in entries(entry.get("columns")):
            name = column.get("name")
            if not isinstance(name, LocatedText):
                continue
            tests = [*items(column.get("tests")), *items(column.get("data_tests"))]
            self._add_reference(job, dataset, name, "test" if tests else "doc")
            if tests:
                job.add_input(dataset)
            for test in tests:
                self._add_relationship(job, test)

    def _add_relationship(self, job: CodeJob, test: Any) -> None:
        """Add the column of another table that a relationships test names."""
        for arguments in test.values() if isinstance(test, dict) else ():
            given = mapping(arguments)
            inner = mapping(given.get("arguments")) or given
            field = inner.get("field")
            other = self._find_dataset(text(inner.get("to")))
            if isinstance(field, LocatedText) and other is not None:
                job.add_input(other)
                self._add_reference(job, other, field, "test")

    def _add_reference(
        self, job: CodeJob, dataset: DatasetId, name: LocatedText, clause: Clause
    ) -> None:
        job.add_reference(
            ColumnReference(
                dataset=dataset,
                field=str(name),
                line=name.line,
                clause=clause,
                text=f"name: {name}",
            )
        )

    def _find_dataset(self, expression: str) -> DatasetId | None:
        key = find_resource(expression)
        return None if key is None else self._dataset_for(self._names.get(key, key))

    def _exposure(self, exposure: dict[str, Any], known: tuple[JobId, DatasetId] | None) -> CodeJob:
        name = exposure.get("name")
        job_id, dataset_id = known or (
            JobId(self._namespace, f"exposure.{name}"),
            DatasetId(self._namespace, f"exposures/{name}"),
        )
        job = CodeJob(
            id=job_id,
            integration="DBT",
            kind="EXPOSURE",
            path=self._path,
            line=name.line if isinstance(name, LocatedText) else 1,
            description=text(exposure.get("description")),
            owners=list_owners(exposure),
        )
        for expression in texts(exposure.get("depends_on")):
            dataset = self._find_dataset(expression)
            if dataset is not None:
                job.add_input(dataset)
        job.add_output(dataset_id)
        return job


def _has_tests(entry: dict[str, Any]) -> bool:
    columns = entries(entry.get("columns"))
    return any(column.get("tests") or column.get("data_tests") for column in columns)


def is_property_file(content: Any) -> bool:
    """Whether a YAML file looks like one of dbt's property files."""
    wanted = {"models", "sources", "seeds", "snapshots", "exposures"}
    return isinstance(content, dict) and bool(wanted & content.keys()) and "name" not in content


def _is_complete(entry: dict[str, Any]) -> bool:
    """Whether all columns are listed: only an enforced contract guarantees that."""
    return is_true(mapping(mapping(entry.get("config")).get("contract")).get("enforced"))
