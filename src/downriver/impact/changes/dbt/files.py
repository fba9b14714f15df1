"""dbt's project, package and property files, compared entry by entry.

Options of models are compared by `dbt_settings`, columns of sources and tests by the scanner. Every
other entry that differs is documentation, has a rule here, or is reported as not read.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.code.dbt_resources import entries, mapping, text
from downriver.capture.scan import project_of
from downriver.impact.changes.dbt.names import names_packages
from downriver.impact.changes.dbt.settings import (
    HARMLESS,
    PROJECT_FILE,
    PROPERTIES,
    RESOURCES,
    load_properties,
)
from downriver.model.ids import DatasetId
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.impact.changes.commit_code import CommitCode
    from downriver.impact.changes.commits import FilePair

_PACKAGE_FILES = ("packages.yml", "dependencies.yml", "package-lock.yml")
_PROFILES = "profiles.yml"
_SHOWN = 80

# Keys of a property file that are documentation, or that other readers compare.
_DOCUMENTS = frozenset(
    {"version", "groups", "macros", "analyses", "unit_tests", "data_tests", "exposures"}
)
_DEFINITIONS = ("metrics", "semantic_models", "saved_queries")
_DOCUMENTATION = HARMLESS | {
    "columns", "tests", "data_tests", "deprecation_date", "owner", "url", "maturity",
    "loader", "loaded_at_field", "loaded_at_query", "arguments",
}  # fmt: skip
_OF_SOURCE = frozenset({"database", "schema", "identifier", "quoting", "tables", "catalog"})
# Of the project file: names and folders that do not change what a model is built from.
_OF_PROJECT = frozenset(
    {
        "version", "config-version", "require-dbt-version", "clean-targets", "target-path",
        "log-path", "asset-paths", "docs-paths", "packages-install-path", "query-comment",
        "analysis-paths", "test-paths", "analyses", "tests", "data_tests", "unit_tests",
        "dbt-cloud", "models", "snapshots", "seeds", "on-run-start", "on-run-end",
        "send_anonymous_usage_stats", "sources", "exposures",
    }
)  # fmt: skip


class FileEntries(NamedTuple):
    """The result of edited dbt files: definitions with another meaning, and unread parts."""

    definitions: list[DatasetId]
    unread: list[Unread]


class Difference(NamedTuple):
    """One entry that differs, by the keys that lead to it.

    `line` is the line in head, 0 if it was removed.
    """

    keys: tuple[str, ...]
    line: int
    before: Any
    after: Any

    def describe(self) -> str:
        """Return the entry with its values."""
        values = (str(v)[:_SHOWN] if v is not None else "not set" for v in self[2:])
        return f"{'.'.join(self.keys)}: {' -> '.join(values)}"


def compare_dbt_files(pairs: Sequence[FilePair], base: CommitCode, head: CommitCode) -> FileEntries:
    """Compare the edited YAML files of dbt projects."""
    file_entries = FileEntries([], [])
    for pair in pairs:
        project = project_of(pair.path, head.projects) or project_of(pair.path, base.projects)
        if project is None or not pair.is_type(*PROPERTIES):
            continue
        name = PurePosixPath(pair.path).name
        folder = PurePosixPath(pair.path).parent.as_posix()
        if name == PROJECT_FILE and pair.base is not None:
            has_packages = names_packages(project, head)
            file_entries.unread.extend(
                _compare_project(pair, (base, head), has_packages=has_packages)
            )
        elif name in _PACKAGE_FILES and folder == project.root:
            file_entries.unread.extend(_compare_packages(pair))
        elif name == _PROFILES:
            if load_properties(pair.base) != load_properties(pair.head):
                file_entries.unread.append(
                    _unread(pair, 0, "the warehouse or schema of a target may differ")
                )
        elif project.kind_of(pair.path) is not None:
            file_entries.definitions.extend(_compare_definitions(pair, head.namespace))
            file_entries.unread.extend(_compare_properties(pair))
    return file_entries


def _unread(pair: FilePair, line: int, detail: str) -> Unread:
    return Unread(path=pair.path, line=line, reason=UnreadReason.SETTING, detail=detail)


# The project file


def _compare_project(
    pair: FilePair, sides: Sequence[CommitCode], *, has_packages: bool
) -> Iterator[Unread]:
    before, after = load_properties(pair.base), load_properties(pair.head)
    for difference in list_differences(before, after):
        top = difference.keys[0]
        if top == "vars":
            if has_packages and not any(_mentions(side, difference.keys[-1]) for side in sides):
                effect = "no file that could be read uses the variable; a package may"
                yield _unread(pair, difference.line, f"{difference.describe()}: {effect}")
        elif top not in _OF_PROJECT and not HARMLESS.intersection(difference.keys):
            yield _unread(pair, difference.line, difference.describe())


def _mentions(side: CommitCode, variable: str) -> bool:
    """Return whether a template of a commit names a variable, so that its value is compared."""
    named = re.compile(rf"""\bvar\(\s*['"]{re.escape(variable)}['"]""")
    if any(
        named.search(macro)
        for project in side.projects
        for macro in (*project.macros, *(m for p in project.packages.values() for m in p))
    ):
        return True
    return any(named.search(side.text(path)) for path in side.files if path.endswith(".sql"))


# Packages


def _compare_packages(pair: FilePair) -> Iterator[Unread]:
    """Yield packages with another version: their macros and models are not in the repository.

    A new package has no effect before something uses it.
    """
    before, after = (_packages(source) for source in (pair.base, pair.head))
    for name, version in before.items():
        if after.get(name) != version:
            now = after.get(name, "removed")
            detail = f"package {name}: {version} -> {now}: its macros and models may differ"
            line = _line_of(pair.head or "", name)
            yield _unread(pair, line, detail[: 2 * _SHOWN])


def _packages(source: str | None) -> dict[str, str]:
    packages = {}
    for kind in ("packages", "projects"):
        for entry in entries(load_properties(source).get(kind)):
            keys = ("package", "git", "local", "tarball", "private", "name")
            name = next((text(entry.get(key)) for key in keys if text(entry.get(key))), "")
            versions = [f"{key} {value}" for key, value in entry.items() if key not in keys]
            packages[name] = ", ".join(versions) or "any version"
    return packages


# Property files


def _compare_definitions(pair: FilePair, namespace: str) -> Iterator[DatasetId]:
    """Yield metrics, semantic models and saved queries that are defined in another way."""
    contents = load_properties(pair.base), load_properties(pair.head)
    for kind in _DEFINITIONS:
        before, after = (_by_name(content.get(kind)) for content in contents)
        for name in before.keys() & after.keys():
            if any(list_differences(before[name], after[name])):
                yield DatasetId(namespace, f"{kind}/{name}")


def _compare_properties(pair: FilePair) -> Iterator[Unread]:
    before, after = load_properties(pair.base), load_properties(pair.head)
    for kind in {**before, **after}:
        if kind in _DOCUMENTS or kind in _DEFINITIONS or kind.startswith(("x-", "anchor")):
            continue
        if kind == "sources":
            yield from _compare_sources(pair, before, after)
        elif kind in RESOURCES:
            yield from _compare_resources(pair, kind, before, after)
        elif before.get(kind) != after.get(kind):
            line = _line_of(pair.head or "", kind)
            yield _unread(pair, line, f"entries of {kind} are not compared")


def _compare_resources(
    pair: FilePair, kind: str, before: dict[str, Any], after: dict[str, Any]
) -> Iterator[Unread]:
    old, new = _by_name(before.get(kind)), _by_name(after.get(kind))
    for name in {**old, **new}:
        entry = mapping(new.get(name))
        for difference in list_differences(mapping(old.get(name)), entry):
            if (
                difference.keys[0] not in ("config", "constraints")
                and "config" not in difference.keys
            ):
                yield _unread(
                    pair, difference.line or _line(entry), f"{name}: {difference.describe()}"
                )


def _compare_sources(
    pair: FilePair, before: dict[str, Any], after: dict[str, Any]
) -> Iterator[Unread]:
    """Yield what differs besides the relation, which the models that use it are rendered with."""
    old, new = _by_name(before.get("sources")), _by_name(after.get("sources"))
    for name in old.keys() & new.keys():
        tables = [_by_name(entry[name].get("tables")) for entry in (old, new)]
        compared = [(name, old[name], new[name])]
        compared += [
            (f"{name}.{table}", tables[0][table], tables[1][table])
            for table in tables[0].keys() & tables[1].keys()
        ]
        for shown, was, will_be in compared:
            for difference in list_differences(was, will_be):
                if difference.keys[0] not in _OF_SOURCE:
                    line = difference.line or _line(will_be)
                    yield _unread(pair, line, f"source {shown}: {difference.describe()}")


def _by_name(value: object) -> dict[str, dict[str, Any]]:
    return {text(entry.get("name")): entry for entry in entries(value)}


def list_differences(
    before: Any, after: Any, keys: tuple[str, ...] = (), line: int = 0
) -> Iterator[Difference]:
    """Yield the entries that differ, except documentation."""
    if isinstance(before, dict) or isinstance(after, dict):
        old, new = mapping(before), mapping(after)
        lines = {str(key): getattr(key, "line", 0) for key in new}
        for key in {**old, **new}:
            if key.removeprefix("+") not in _DOCUMENTATION:
                place = lines.get(key, line)
                yield from list_differences(old.get(key), new.get(key), (*keys, str(key)), place)
    elif before != after:
        if _are_named(before) and _are_named(after):
            named = _by_name(before), _by_name(after)
            for name in {**named[0], **named[1]}:
                if name not in named[0] or name not in named[1]:
                    yield Difference(
                        (*keys, name), line, *(("there" if name in n else None) for n in named)
                    )
                else:
                    yield from list_differences(named[0][name], named[1][name], (*keys, name), line)
        else:
            yield Difference(keys, line, before, after)


def _are_named(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, dict) and "name" in v for v in value)


def _line(entry: dict[str, Any]) -> int:
    return int(getattr(entry.get("name"), "line", 0))


def _line_of(source: str, word: str) -> int:
    at = source.find(word)
    return source.count("\n", 0, at) + 1 if at >= 0 else 0
