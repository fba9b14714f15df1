"""The dbt models of both sides of a change: their references, and their SQL for a database."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from downriver.capture.code.dbt_resources import entries, list_refs, mapping, text, texts
from downriver.capture.scan import Repository, find_projects
from downriver.capture.sql import render_sql
from downriver.model.trust.verification import UnverifiedReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from downriver.capture.scan.dbt import DbtProject
    from downriver.capture.scan.dbt.project import DbtModelFile
    from downriver.openlineage.facets.custom import BuildFacet

_BUILT_IN_FULL = frozenset({"is_incremental", "should_full_refresh"})
_PLACEHOLDER = re.compile(r"downriver_reference_(\d+)_")
_TRAILING = f"{string.whitespace};"


class SideModel(NamedTuple):
    """A model, snapshot or seed of one side."""

    project: DbtProject
    file: DbtModelFile
    text: str
    kind: str

    @property
    def name(self) -> str:
        """The name in `ref`."""
        return self.file.name

    @property
    def build(self) -> BuildFacet:
        """How dbt builds it."""
        return self.project.build_of(self.file.path, self.name, self.text)

    def keys(self) -> Iterator[list[str]]:
        """Yield the columns that identify a row by declaration: unique keys and tests."""
        config = self.project.config_of(self.file.path, self.name, self.text)
        key = texts(config.get("unique_key"))
        if key:
            yield key
        entry = self.project.properties.get(self.name, {})
        for column in entries(entry.get("columns")):
            if "unique" in _test_names(column) and text(column.get("name")):
                yield [text(column.get("name"))]
        for test in (*entries(entry.get("data_tests")), *entries(entry.get("tests"))):
            for name, given in test.items():
                if name.rpartition(".")[2] == "unique_combination_of_columns":
                    options = mapping(given)
                    options = {**options, **mapping(options.get("arguments"))}
                    yield texts(options.get("combination_of_columns"))


def _test_names(column: dict[str, object]) -> set[str]:
    tests = [*_listed(column.get("data_tests")), *_listed(column.get("tests"))]
    names = {test for test in tests if isinstance(test, str)}
    return names | {str(name) for test in tests if isinstance(test, dict) for name in test}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


class UnrenderedError(Exception):
    """The SQL of a model is not known, for a reason."""

    def __init__(self, reason: UnverifiedReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class UndefinedReferenceError(Exception):
    """A model refers to a model that does not exist: dbt does not compile it."""


class CommitModels:
    """The models of one commit."""

    def __init__(self, root: Repository) -> None:
        files = list(root.files())
        self.models: dict[str, SideModel] = {}
        for project in find_projects(root, files):
            for path, file in project.models.items():
                kind = project.kind_of(path) or "model"
                source = (root.read(path) or "") if not path.endswith(".csv") else ""
                self.models[file.name] = SideModel(project, file, source, kind)

    def by_path(self) -> dict[str, str]:
        """Return the names of the models by the paths of their files."""
        return {model.file.path: name for name, model in self.models.items()}

    def downstream(self, names: Iterable[str]) -> set[str]:
        """Return some models and all models downstream of them."""
        readers: dict[str, list[str]] = {}
        for name, model in self.models.items():
            for parent in list_refs(model.text):
                readers.setdefault(parent, []).append(name)
        found = set(names)
        todo = list(found)
        while todo:
            for reader in readers.get(todo.pop(), ()):
                if reader not in found:
                    found.add(reader)
                    todo.append(reader)
        return found


def render_model(
    model: SideModel,
    adapter: str,
    relation_of: Callable[[str], str],
    columns_of: Callable[[str], Sequence[str] | None],
    own: str,
) -> str:
    """Return the query of a model as dbt runs it when it builds the model from nothing.

    `relation_of` returns the relation of a `ref` or `source` key as SQL. It is called
    only for keys that the query uses. `own` is the name of the model's own table.
    """
    project = model.project
    keys = list(project.sql_names)
    placeholders = {key: f"downriver_reference_{number}_" for number, key in enumerate(keys)}

    def resolve(name: str) -> str:
        return _PLACEHOLDER.sub(lambda found: relation_of(keys[int(found[1])]), name)

    template = replace(
        project.template(own, lambda table: columns_of(resolve(table))),
        names=placeholders,
        adapter=adapter,
        exact=True,
    )
    rendered = render_sql(model.text, template)
    unknown = [spot.message for spot in rendered.blind_spots]
    unknown += [f"it depends on {c}" for c in rendered.conditions if c not in _BUILT_IN_FULL]
    if unknown:
        raise UnrenderedError(UnverifiedReason.TEMPLATE, unknown[0])
    for table in rendered.tables:
        if table not in placeholders.values():
            relation_of(table)  # raises if the database does not have it
    return resolve(rendered.texts[0].rstrip(_TRAILING))
