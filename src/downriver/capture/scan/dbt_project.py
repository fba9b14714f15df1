"""dbt projects that were not compiled: their names, macros and variables, from their own files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.scan.yaml_lines import YamlError, load_yaml
from downriver.capture.sql import Template

if TYPE_CHECKING:
    from downriver.capture.scan.repository import Repository

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
    """What a project's own files tell."""

    root: str
    name: str
    folders: dict[str, list[str]]
    variables: dict[str, Any]
    macros: tuple[str, ...] = ()
    names: dict[str, str] = {}
    models: list[str] = []

    def kind_of(self, path: str) -> str | None:
        """Return what a file of the project is: a model, a macro…; None when it is none of it."""
        inside = PurePosixPath(path)
        for kind, folders in self.folders.items():
            for folder in folders:
                if inside.is_relative_to(PurePosixPath(self.root) / folder):
                    return kind
        return None

    def template(self, this: str) -> Template:
        """Return what is known of a template's surroundings."""
        return Template(this=this, names=self.names, variables=self.variables, macros=self.macros)


def find_projects(repository: Repository, files: list[str]) -> list[DbtProject]:
    """Return the dbt projects among files, the innermost first."""
    found = []
    for path in files:
        if PurePosixPath(path).name == "dbt_project.yml":
            project = _read_project(repository, path)
            if project is not None:
                found.append(project)
    for project in found:
        _learn(project, repository, files)
    return sorted(found, key=lambda project: -len(project.root))


def project_of(path: str, projects: list[DbtProject]) -> DbtProject | None:
    """Return the project a file belongs to."""
    return next((p for p in projects if PurePosixPath(path).is_relative_to(p.root)), None)


def _read_project(repository: Repository, path: str) -> DbtProject | None:
    text = repository.read(path)
    try:
        content = load_yaml(text) if text is not None else None
    except YamlError:
        return None  # reported where the file itself is read
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
    )


def _learn(project: DbtProject, repository: Repository, files: list[str]) -> None:
    """Read the macros of a project, and what its sources and models are called."""
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
            project.names.update(_source_names(repository.read(path) or ""))
    project.macros = tuple(macros)


def model_names(path: str, sql: str) -> tuple[str, str]:
    """Return what a model or snapshot is called in `ref` and as a table."""
    snapshot = _SNAPSHOT.search(sql)
    name = snapshot[1] if snapshot else PurePosixPath(path).stem
    alias = _ALIAS.search(sql)
    return name, alias[1] if alias else name


def _source_names(text: str) -> dict[str, str]:
    try:
        content = load_yaml(text)
    except YamlError:
        return {}
    found: dict[str, str] = {}
    sources = content.get("sources") if isinstance(content, dict) else None
    for source in sources if isinstance(sources, list) else []:
        if isinstance(source, dict):
            found.update(source_tables(source))
    return found


def source_tables(source: dict[str, Any]) -> dict[str, str]:
    """Return the tables of a source by what `source('name', 'table')` says."""
    name = str(source.get("name", ""))
    place = [source.get("database"), source.get("schema") or name]
    parts = [str(part) for part in place if isinstance(part, str) and "{{" not in part]
    tables = source.get("tables")
    return {
        f"{name}.{table['name']}": ".".join([*parts, str(table.get("identifier", table["name"]))])
        for table in (tables if isinstance(tables, list) else [])
        if isinstance(table, dict) and isinstance(table.get("name"), str)
    }
