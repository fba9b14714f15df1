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
from downriver.capture.code.dbt_resources import entries, find_dialect, mapping, text
from downriver.capture.code.dbt_snapshots import split_snapshots
from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.capture.scan.dbt.model_config import list_hooks
from downriver.capture.scan.dbt.packages import (
    PROJECT_FILE,
    add_variables_of_users,
    load_properties,
    read_packages,
)
from downriver.capture.scan.dbt.relations import Quoting, RelationNames
from downriver.capture.scan.dbt.semantics import list_dimensions, list_measures
from downriver.capture.scan.dbt.snapshots import list_yaml_snapshots
from downriver.capture.scan.dbt.unit_tests import read_fixtures
from downriver.capture.scan.dbt.warehouse import find_adapter, guess_project_dialect
from downriver.capture.sql import Template, render_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    snapshots: list[DbtModelFile] = []  # further snapshots of a file, and those in property files
    yaml_snapshots: dict[str, str] = {}  # the code of those in a property file, by path
    fixtures: dict[str, str] = {}  # of unit tests, by name: queries and headers
    relations: Any = None
    properties: dict[str, dict[str, Any]] = {}  # of models, seeds and snapshots, by name
    measures: dict[str, str] = {}  # the semantic model of each measure
    # The semantic models with each dimension or entity, and the entities of each model.
    dimensions: dict[str, list[tuple[str, frozenset[str]]]] = {}
    rendered: dict[tuple[str, int], str] = {}  # texts of property files, once they are rendered

    def kind_of(self, path: str) -> str | None:
        """Return the kind of a file: model, snapshot, test, analysis, macro or seed, else None."""
        return next((kind for kind, folder in self._places if is_below(path, folder)), None)

    @cached_property
    def _places(self) -> list[tuple[str, str]]:
        root = PurePosixPath(self.root)
        return [
            (kind, (root / folder).as_posix())
            for kind, folders in self.folders.items()
            for folder in folders
        ]

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

    def is_disabled(self, model: DbtModelFile, sql: str) -> bool:
        """Return whether an option turns a model off. A computed option does not count."""
        enabled = self.config_of(model.path, model.name, sql).get("enabled")
        return enabled is False or (isinstance(enabled, str) and enabled.casefold() == "false")

    def hooks_of(self, path: str, name: str) -> list[str]:
        """Return the hooks of a model that are not in its code. Hooks of every place run."""
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
        """Return the project file's options for a file. The innermost folder has precedence."""
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
        """Return the model of a file. Outside of a project, its name is that of the file."""
        snapshot = _SNAPSHOT.search(sql)
        for other in self.snapshots:
            if snapshot is not None and (other.path, other.name) == (path, snapshot[1]):
                return other
        known = self.models.get(path)
        if known is not None:
            return known
        name, table, schema = read_model_names(path, sql)
        return DbtModelFile(path=path, name=name, table=table, schema=schema, job=name)

    def models_in(self, path: str) -> list[DbtModelFile]:
        """Return the models, snapshots and seeds of a file."""
        own = self.models.get(path)
        more = [other for other in self.snapshots if other.path == path]
        return [*([own] if own is not None else []), *more]

    @property
    def all_models(self) -> list[DbtModelFile]:
        """All models, snapshots and seeds."""
        return [*self.models.values(), *self.snapshots]

    def find_relation(self, table: str) -> str | None:
        """Return the relation of this project with a name in its SQL."""
        return None if self.relations is None else self.relations.find(table)

    @cached_property
    def relation_names(self) -> frozenset[str]:
        """The names of the relations of models and sources, after all are read."""
        return frozenset(self.names.values())

    @cached_property
    def folded_names(self) -> dict[str, str]:
        """`names` by the arguments in lower case, after all are read."""
        return {argument.casefold(): relation for argument, relation in self.names.items()}

    def render(self, value: object) -> str:
        """Return a rendered text of a property file; "" if a value is known only at run time."""
        given = text(value)
        if "{{" not in given:
            return given
        key = (given, len(self.packages))  # a package may contain the macro that the text uses
        if key not in self.rendered:
            rendered = render_sql(given, self.template(""))
            found = rendered.texts[-1].strip()
            self.rendered[key] = "" if rendered.blind_spots or found == "None" else found
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
        if PurePosixPath(path).name == PROJECT_FILE:
            project = _read_project(repository, path)
            if project is not None:
                projects.append(project)
    projects.sort(key=lambda project: -len(PurePosixPath(project.root).parts))
    sources = {p.root: _read_files(p, projects, repository, files) for p in projects}
    _name_jobs_and_tables(projects)
    add_variables_of_users(projects, repository)
    spellings: dict[str, str] = {}
    for project in projects:
        project.packages = dict(read_packages(project, repository, _read_project))
        _find_dialect(project, repository, files, dialect)
        project.relations = RelationNames(project.dialect, spellings)
        _name_relations(project, sources[project.root])
    return projects


def project_of(path: str, projects: list[DbtProject]) -> DbtProject | None:
    """Return the project of a file."""
    return next((project for project in projects if is_below(path, project.root)), None)


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or in it. Both have no `.` or `..` in them."""
    return folder == "." or path == folder or path.startswith(f"{folder}/")


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
            source = repository.read(path) or ""
            project.models[path] = _model_file(path, source)
            blocks = list(split_snapshots(source).values()) if kind == "snapshot" else []
            project.snapshots += [_model_file(path, block) for block in blocks[1:]]
        elif suffix in (".yml", ".yaml") and kind is not None:
            contents = load_properties(repository.read(path) or "")
            properties += contents
            defined = [sql for content in contents for sql in list_yaml_snapshots(content)]
            if defined:
                project.yaml_snapshots[path] = "\n".join(defined)
                project.snapshots += [_model_file(path, sql) for sql in defined]
    project.macros = tuple(macros)
    for folder in project.folders["seed"]:
        for path in repository.files_in((PurePosixPath(project.root) / folder).as_posix(), ".csv"):
            stem = PurePosixPath(path).stem
            project.models[path] = DbtModelFile(path=path, name=stem, table=stem)
    project.fixtures = read_fixtures(project.root, project.folders["test"], repository)
    _read_aliases(project, properties)
    project.measures = list_measures(properties)
    project.dimensions = list_dimensions(properties)
    return properties


def _model_file(path: str, sql: str) -> DbtModelFile:
    name, table, schema = read_model_names(path, sql)
    return DbtModelFile(path=path, name=name, table=table, schema=schema)


def _may_be_macros(kind: str, path: str) -> bool:
    """Whether a file has macros: generic tests are in tests/generic."""
    return kind == "macro" or "generic" in PurePosixPath(path).parts


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
    by_name = {model.name: model for model in project.all_models}
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
    """Read the file of each version of a model, and the version for `ref` without a version."""
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
    """Name the job and the relation of every model of the repository."""
    models = [(project, model) for project in projects for model in project.all_models]
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
    for model in project.all_models:
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
    """Return database, schema and identifier. The default schema is the name of the source."""
    database = project.render(source.get("database") or source.get("catalog"))
    named = project.render(source.get("schema")) or text(source.get("name"))
    identifier = project.render(table.get("identifier")) or text(table.get("name"))
    return [part for part in (database, named, identifier) if part]
