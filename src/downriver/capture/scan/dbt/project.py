"""A dbt project that was not compiled: its folders, names, macros, packages and variables."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code.dbt_build import (
    build_settings,
    inline_config,
    list_folder_configs,
)
from downriver.capture.code.dbt_resources import entries, find_dialect, mapping, text, texts
from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.capture.scan.dbt.model_config import list_hooks
from downriver.capture.scan.dbt.relations import Quoting, RelationNames
from downriver.capture.scan.dbt.unit_tests import read_fixtures
from downriver.capture.scan.dbt.warehouse import find_adapter, guess_project_dialect
from downriver.capture.scan.located_text import load_yaml
from downriver.capture.sql import Template, render_sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.scan.repository import Repository
    from downriver.openlineage.facets.custom import BuildFacet

_FOLDERS = {
    "model": ("model-paths", "source-paths", "models"),
    "snapshot": ("snapshot-paths", "", "snapshots"),
    "test": ("test-paths", "", "tests"),
    "analysis": ("analysis-paths", "", "analyses"),
    "macro": ("macro-paths", "", "macros"),
    "seed": ("seed-paths", "data-paths", "seeds"),
}
_SNAPSHOT = re.compile(r"\{%-?\s*snapshot\s+(\w+)")
_CONFIG = re.compile(r"\bconfig\s*\(")
_OPTION = re.compile(r"\b(alias|schema)\s*=\s*['\"]([^'\"{}]+)['\"]")
_PROJECT_FILE = "dbt_project.yml"


class DbtModelFile(msgspec.Struct, kw_only=True):
    """A model, snapshot or seed: its file, its name in `ref`, and the name of its relation."""

    path: str
    name: str
    table: str
    schema: str = ""
    job: str = ""


class DbtProject(msgspec.Struct, kw_only=True, dict=True):
    """A project's folders, variables, macros and names, from its own files.

    `names` maps the arguments of `ref` and `source` to relations, `sql_names` to the same names as
    SQL. `macros` are the texts of its macro files, `packages` those of its packages.
    """

    root: str
    name: str
    folders: dict[str, list[str]]
    variables: dict[str, Any]
    settings: dict[str, Any] = {}
    adapter: str = ""
    dialect: str | None = None
    macros: tuple[str, ...] = ()
    packages: dict[str, tuple[str, ...]] = {}
    quoting: Quoting = Quoting()
    names: dict[str, str] = {}
    sql_names: dict[str, str] = {}
    models: dict[str, DbtModelFile] = {}  # by path
    fixtures: dict[str, str] = {}  # of unit tests, by name: queries and headers
    relations: Any = None
    properties: dict[str, dict[str, Any]] = {}  # of models, seeds and snapshots, by name
    measures: dict[str, str] = {}  # the semantic model of each measure
    # The semantic models with each dimension or entity, and the entities of each model.
    dimensions: dict[str, list[tuple[str, frozenset[str]]]] = {}
    rendered: dict[tuple[str, int], str] = {}  # texts of property files, once they are rendered

    def kind_of(self, path: str) -> str | None:
        """Return the kind of a file: model, snapshot, test, analysis, macro or seed, else None."""
        inside = PurePosixPath(path)
        for kind, folders in self.folders.items():
            for folder in folders:
                if inside.is_relative_to(PurePosixPath(self.root) / folder):
                    return kind
        return None

    def build_of(self, path: str, name: str, sql: str) -> BuildFacet:
        """Return how a model or snapshot is built."""
        entry = self.properties.get(name, {})
        return build_settings(self._configs(path, name, sql), entry)

    def config_of(self, path: str, name: str, sql: str) -> dict[str, Any]:
        """Return all options of a model, snapshot or seed, wherever they are set."""
        config: dict[str, Any] = {}
        for given in reversed(self._configs(path, name, sql)):
            config.update(given)
        return config

    def hooks_of(self, path: str, name: str) -> list[str]:
        """Return the hooks of a model that are not in its code. Those of all places run."""
        configs = [
            *self._folder_configs(path),
            mapping(self.properties.get(name, {}).get("config")),
        ]
        return [hook for config in configs for hook in list_hooks(config)]

    def _configs(self, path: str, name: str, sql: str) -> list[dict[str, Any]]:
        """Return the options in a model's code, in its property file and in the project file."""
        entry = self.properties.get(name, {})
        return [inline_config(sql), mapping(entry.get("config")), self.folder_config(path)]

    def folder_config(self, path: str) -> dict[str, Any]:
        """Return the options that the project file has for a file: the innermost folder counts."""
        config: dict[str, Any] = {}
        for level in self._folder_configs(path):
            config.update(level)
        return config

    def _folder_configs(self, path: str) -> list[dict[str, Any]]:
        """Return the options of the project file for each folder of a file, the outermost first."""
        kind = self.kind_of(path) or "model"
        section, folders = self.settings.get(f"{kind}s"), self._subfolders(path, kind)
        return list(list_folder_configs(section, [self.name, *folders]))

    def _subfolders(self, path: str, kind: str) -> list[str]:
        """Return the folders between the folder of a kind and a file, and the file's name."""
        inside = PurePosixPath(path)
        for folder in self.folders.get(kind, ()):
            root = PurePosixPath(self.root) / folder
            if inside.is_relative_to(root):
                return list(inside.relative_to(root).with_suffix("").parts)
        return []

    def template(self, this: str, columns_of: Any = None) -> Template:
        """Return the names, variables and macros for a template; `this` is its table."""
        return Template(
            this=this,
            names=self.sql_names,
            variables=self.variables,
            macros=self.macros,
            packages=self.packages,
            adapter=self.adapter,
            columns_of=columns_of,
        )

    def model_at(self, path: str, sql: str) -> DbtModelFile:
        """Return the model of a file. Outside of a project it has the name of its file."""
        known = self.models.get(path)
        if known is not None:
            return known
        name, table, schema = read_model_names(path, sql)
        return DbtModelFile(path=path, name=name, table=table, schema=schema, job=name)

    def find_relation(self, table: str) -> str | None:
        """Return the relation of this project that a name in its SQL means."""
        return None if self.relations is None else self.relations.find(table)

    @cached_property
    def relation_names(self) -> frozenset[str]:
        """The names of the relations of models and sources, once all are known."""
        return frozenset(self.names.values())

    @cached_property
    def folded_names(self) -> dict[str, str]:
        """`names` by the arguments in lower case, once all are known."""
        return {argument.casefold(): relation for argument, relation in self.names.items()}

    def render(self, value: object) -> str:
        """Return a text of a property file with its variables; "" when only a run knows them."""
        given = text(value)
        if "{{" not in given:
            return given
        key = (given, len(self.packages))  # a package may have the macro that it uses
        if key not in self.rendered:
            rendered = render_sql(given, self.template(""))
            self.rendered[key] = "" if rendered.blind_spots else rendered.texts[-1].strip()
        return self.rendered[key]


def find_projects(
    repository: Repository, files: list[str], dialect: str | None = None
) -> list[DbtProject]:
    """Return the dbt projects among files, the innermost first.

    `dialect` is the dialect of their SQL; by default that of their adapter, or guessed. The
    projects are read again only when one of the files has changed.
    """
    return repository.once(
        f"dbt {dialect}", files, lambda: _read_projects(repository, files, dialect)
    )


def _read_projects(
    repository: Repository, files: list[str], dialect: str | None
) -> list[DbtProject]:
    projects = []
    for path in files:
        if PurePosixPath(path).name == _PROJECT_FILE:
            project = _read_project(repository, path)
            if project is not None:
                projects.append(project)
    projects.sort(key=lambda project: -len(PurePosixPath(project.root).parts))
    sources = {p.root: _read_files(p, projects, repository, files) for p in projects}
    _name_jobs_and_tables(projects)
    spellings: dict[str, str] = {}
    for project in projects:
        project.packages = dict(_read_packages(project, repository))
        _find_dialect(project, repository, files, dialect)
        project.relations = RelationNames(project.dialect, spellings)
        _name_relations(project, sources[project.root])
    return projects


def project_of(path: str, projects: list[DbtProject]) -> DbtProject | None:
    """Return the project of a file."""
    return next((p for p in projects if PurePosixPath(path).is_relative_to(p.root)), None)


def _read_project(repository: Repository, path: str) -> DbtProject | None:
    source = repository.read(path)
    try:
        content = load_values(source) if source is not None else None
    except YamlError:
        return None  # reported when the file itself is read
    if not isinstance(content, dict):
        return None
    folders = {
        kind: [str(p) for p in content.get(key) or content.get(old) or [default]]
        for kind, (key, old, default) in _FOLDERS.items()
    }
    name = str(content.get("name", ""))
    known = dict(mapping(content.get("vars")))
    known.update(mapping(known.get(name)))
    return DbtProject(
        root=PurePosixPath(path).parent.as_posix(),
        name=name,
        folders=folders,
        variables={str(key): value for key, value in known.items()},
        settings={str(key): value for key, value in content.items()},
    )


def _read_files(
    project: DbtProject, projects: list[DbtProject], repository: Repository, files: list[str]
) -> list[dict[str, Any]]:
    """Read the macros and models of a project, and return its property files."""
    macros: list[str] = []
    properties: list[dict[str, Any]] = []
    for path in files:
        if project_of(path, projects) is not project:
            continue
        suffix, kind = PurePosixPath(path).suffix, project.kind_of(path)
        if suffix == ".sql" and kind in ("macro", "test"):
            macros += [repository.read(path) or ""] if _may_be_macros(kind, path) else []
        elif suffix in (".sql", ".py") and kind in ("model", "snapshot"):
            name, table, schema = read_model_names(path, repository.read(path) or "")
            project.models[path] = DbtModelFile(path=path, name=name, table=table, schema=schema)
        elif suffix in (".yml", ".yaml") and kind is not None:
            properties += _load(repository.read(path) or "")
    project.macros = tuple(macros)
    for folder in project.folders["seed"]:
        for path in repository.files_in((PurePosixPath(project.root) / folder).as_posix(), ".csv"):
            stem = PurePosixPath(path).stem
            project.models[path] = DbtModelFile(path=path, name=stem, table=stem)
    project.fixtures = read_fixtures(project.root, project.folders["test"], repository)
    _read_aliases(project, properties)
    project.measures = {
        text(measure.get("name")): text(model.get("name"))
        for content in properties
        for model in entries(content.get("semantic_models"))
        for measure in entries(model.get("measures"))
    }
    project.dimensions = _read_dimensions(properties)
    return properties


def _read_dimensions(
    properties: list[dict[str, Any]],
) -> dict[str, list[tuple[str, frozenset[str]]]]:
    found: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for content in properties:
        for model in entries(content.get("semantic_models")):
            owned = {text(entity.get("name")) for entity in entries(model.get("entities"))}
            owner = (
                text(model.get("name")),
                frozenset({*owned, text(model.get("primary_entity"))}),
            )
            parts = [*entries(model.get("dimensions")), *entries(model.get("entities"))]
            for part in parts:
                found.setdefault(text(part.get("name")), []).append(owner)
    return found


def _may_be_macros(kind: str, path: str) -> bool:
    """Whether a file has macros: generic tests are in tests/generic."""
    return kind == "macro" or "generic" in PurePosixPath(path).parts


def _load(source: str) -> list[dict[str, Any]]:
    try:
        content = mapping(load_yaml(source))
    except YamlError:
        return []  # reported when the file itself is read
    return [content] if content else []


def read_model_names(path: str, sql: str) -> tuple[str, str, str]:
    """Return the name of a model or snapshot in `ref`, and alias and schema of its relation."""
    snapshot = _SNAPSHOT.search(sql)
    name = snapshot[1] if snapshot else PurePosixPath(path).stem
    # A version as in `orders.v2.sql` is part of the name.
    name = name.replace(".", "_")
    call = _CONFIG.search(sql)
    options = dict(_OPTION.findall(sql, call.end())) if call is not None else {}
    return name, options.get("alias", name), options.get("schema", "")


def _read_aliases(project: DbtProject, properties: Sequence[dict[str, Any]]) -> None:
    """Read the aliases, schemas and versions of models in property files."""
    by_name = {model.name: model for model in project.models.values()}
    for content in properties:
        for kind in ("models", "seeds", "snapshots"):
            for entry in entries(content.get(kind)):
                name, config = text(entry.get("name")), mapping(entry.get("config"))
                model = by_name.get(name)
                project.properties[name] = entry
                if model is not None:
                    model.table = project.render(config.get("alias")) or model.table
                    model.schema = project.render(config.get("schema")) or model.schema
                _read_versions(project, by_name, entry)


def _read_versions(
    project: DbtProject, by_name: dict[str, DbtModelFile], entry: dict[str, Any]
) -> None:
    """Read which file has which version of a model, and which version `ref` means without one."""
    name = text(entry.get("name"))
    versions = {str(version.get("v")): version for version in entries(entry.get("versions"))}
    for number, version in versions.items():
        file = by_name.get(text(version.get("defined_in"))) or by_name.get(f"{name}_v{number}")
        if file is not None:
            file.name = f"{name}_v{number}"
            alias = text(mapping(version.get("config")).get("alias"))
            file.table = alias or f"{name}_v{number}"
    if versions:
        latest = str(entry.get("latest_version") or max(versions, key=_version_order))
        project.names[name] = f"{name}_v{latest}"


def _version_order(version: str) -> tuple[float, str]:
    try:
        return float(version), version
    except ValueError:
        return 0.0, version


def _name_jobs_and_tables(projects: list[DbtProject]) -> None:
    """Give every model of the repository a job and a relation of its own name."""
    models = [(project, model) for project in projects for model in project.models.values()]
    jobs = Counter(model.name.casefold() for _, model in models)
    tables = Counter(model.table.casefold() for _, model in models)
    qualified = Counter(f"{model.schema}.{model.table}".casefold() for _, model in models)
    for project, model in models:
        is_unique = jobs[model.name.casefold()] == 1
        model.job = model.name if is_unique else f"{project.name}.{model.name}"
        if tables[model.table.casefold()] > 1:
            full = f"{model.schema}.{model.table}"
            is_known = model.schema and qualified[full.casefold()] == 1
            model.table = full if is_known else model.job


def _find_dialect(
    project: DbtProject, repository: Repository, files: list[str], dialect: str | None
) -> None:
    root, profile = PurePosixPath(project.root), text(project.settings.get("profile"))
    project.adapter = find_adapter(repository, files, root, profile)
    project.dialect = dialect or find_dialect(project.adapter)
    if project.dialect is None:
        paths = [path for path in project.models if path.endswith(".sql")]
        project.dialect = guess_project_dialect(repository.read(path) or "" for path in paths)
        project.adapter = project.dialect or ""
    default = Quoting.of_adapter(project.adapter)
    project.quoting = default.replaced(project.settings.get("quoting"))


def _name_relations(project: DbtProject, properties: list[dict[str, Any]]) -> None:
    """Name the relations of models and sources."""
    for model in project.models.values():
        schema, _, identifier = model.table.rpartition(".")
        own = [part for part in (schema, identifier) if part]
        _add_name(project, model.name, own, project.quoting, is_model=True)
    for name, versioned in list(project.names.items()):
        if name not in project.sql_names and versioned in project.sql_names:
            project.names[name] = project.names[versioned]
            project.sql_names[name] = project.sql_names[versioned]
    for content in properties:
        for source in entries(content.get("sources")):
            for table in entries(source.get("tables")):
                if text(table.get("name")):
                    quoting = project.quoting.replaced(source.get("quoting"))
                    quoting = quoting.replaced(table.get("quoting"))
                    key = f"{text(source.get('name'))}.{text(table.get('name'))}"
                    parts = source_parts(project, source, table)
                    _add_name(project, key, parts, quoting, is_model=False)


def _add_name(
    project: DbtProject, key: str, parts: list[str], quoting: Quoting, *, is_model: bool
) -> None:
    relation = project.relations.add(parts, quoting, is_model=is_model)
    project.names[key], project.sql_names[key] = relation.name, relation.sql


def source_parts(project: DbtProject, source: dict[str, Any], table: dict[str, Any]) -> list[str]:
    """Return database, schema and identifier of a source; parts only a run knows are left out."""
    database = project.render(source.get("database") or source.get("catalog"))
    schema = source.get("schema")
    named = project.render(schema) if schema is not None else text(source.get("name"))
    identifier = project.render(table.get("identifier")) or text(table.get("name"))
    return [part for part in (database, named, identifier) if part]


def _read_packages(
    project: DbtProject, repository: Repository
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and macro files of each package that is installed or in this repository."""
    root = PurePosixPath(project.root)
    installed = text(project.settings.get("packages-install-path"))
    folders = [root / (installed or folder) for folder in ("dbt_packages", "dbt_modules")]
    places = [place for folder in folders for place in repository.folders_in(folder.as_posix())]
    places += list(_local_packages(root, repository))
    if project.name:
        yield project.name, project.macros
    for place in dict.fromkeys(places):
        package = _read_project(repository, f"{place}/{_PROJECT_FILE}")
        if package is None or not package.name or package.name == project.name:
            continue
        for name, value in package.variables.items():
            project.variables.setdefault(name, value)
        yield (
            package.name,
            tuple(
                repository.read(path) or ""
                for folder in package.folders["macro"]
                for path in repository.files_in(f"{place}/{folder}", ".sql")
            ),
        )


def _local_packages(root: PurePosixPath, repository: Repository) -> Iterator[str]:
    for file in ("packages.yml", "dependencies.yml"):
        for content in _load(repository.read((root / file).as_posix()) or ""):
            for package in entries(content.get("packages")):
                for path in texts(package.get("local")):
                    place = _normal_path(root / path)
                    if place is not None:
                        yield place


def _normal_path(path: PurePosixPath) -> str | None:
    """Return a path without `..`; None for one outside of the repository."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."
