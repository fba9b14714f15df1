"""dbt options that differ between two commits, and the effect of each.

An option is set in the code of a model, in a property file or in `dbt_project.yml`. Each one that
differs has a rule, is known not to change data, or is reported as not read.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.code.dbt_build import JinjaExpression, inline_config
from downriver.capture.code.dbt_resources import entries, is_true, mapping, text
from downriver.capture.code.dbt_snapshots import split_snapshots
from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan import project_of
from downriver.capture.scan.located_text import load_yaml
from downriver.model.changes import Change, LogicChange, TableDrop
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.scan.dbt import DbtProject
    from downriver.capture.scan.dbt.project import DbtModelFile
    from downriver.impact.changes.commit_code import CommitCode
    from downriver.impact.changes.commits import FilePair
    from downriver.openlineage.facets.custom import BuildFacet

PROJECT_FILE = "dbt_project.yml"
PROPERTIES = (".yml", ".yaml")
RESOURCES = ("models", "snapshots", "seeds")

# Options for documentation and for the cost of a run. They do not change data.
HARMLESS = frozenset(
    {
        "tags", "meta", "docs", "description", "group", "persist_docs", "query_tag", "labels",
        "snowflake_warehouse", "severity", "warn_if", "error_if", "store_failures", "threads",
        "store_failures_as", "full_refresh", "concurrent_batches", "transient", "label",
        "automatic_clustering", "copy_grants", "bind", "databricks_compute", "query-comment",
        "on_configuration_change", "static_analysis", "freshness",
    }
)  # fmt: skip
_JUDGED = frozenset({"on_schema_change", "contract"})  # by the new materialization
# Options that decide which rows an incremental model or snapshot keeps, or how a seed is loaded.
_ROWS = frozenset(
    {
        "unique_key", "incremental_strategy", "merge_update_columns", "merge_exclude_columns",
        "incremental_predicates", "predicates", "batch_size", "begin", "event_time", "lookback",
        "partitions", "strategy", "updated_at", "check_cols", "invalidate_hard_deletes",
        "hard_deletes", "dbt_valid_to_current", "snapshot_meta_column_names", "column_types",
        "delimiter", "quote_columns", "partition_by", "relation",
    }
)  # fmt: skip
_LAYOUT = frozenset(
    {
        "cluster_by", "sort", "sortkey", "sort_type", "dist", "distkey", "indexes", "file_format",
        "format", "buckets", "clustered_by", "unlogged", "tblproperties", "table_properties",
        "liquid_clustered_by", "partitioned_by", "order_by", "primary_key",
    }
)  # fmt: skip
_RELATION = frozenset(
    {
        "alias", "schema", "database", "project", "dataset", "catalog", "target_schema",
        "target_database", "location", "location_root",
    }
)  # fmt: skip
_KEEPS_ROWS = ("incremental", "snapshot", "seed", "microbatch")
_REBUILT = ("view", "table", "")  # as a query gives it at any time
_NAMES_SHOWN = 3


class ModelChange(NamedTuple):
    """A change to the table that the file of a model builds."""

    path: str
    change: Change


class SettingEdits(NamedTuple):
    """The effects of edited dbt settings. `builds` is how head builds models, by their paths."""

    builds: dict[str, BuildFacet]
    changes: list[ModelChange]
    unread: list[Unread]

    @property
    def paths(self) -> set[str]:
        """The files of the models whose settings differ."""
        return {*self.builds, *(change.path for change in self.changes)}


NO_SETTINGS = SettingEdits({}, [], [])


def compare_settings(pairs: Sequence[FilePair], base: CommitCode, head: CommitCode) -> SettingEdits:
    """Compare the options of all models, snapshots and seeds that the edits can affect."""
    comparison = _Comparison(pairs, base, head)
    for project in head.projects:
        before = _same_project(project, base.projects)
        if before is not None:
            comparison.compare(before, project)
    return SettingEdits(comparison.builds, comparison.changes, list(comparison.unread()))


def _same_project(project: DbtProject, others: Sequence[DbtProject]) -> DbtProject | None:
    return next((other for other in others if other.root == project.root), None)


class _Comparison:
    def __init__(self, pairs: Sequence[FilePair], base: CommitCode, head: CommitCode) -> None:
        self._pairs = {pair.path: pair for pair in pairs}
        self._sides = (base, head)
        self.builds: dict[str, BuildFacet] = {}
        self.changes: list[ModelChange] = []
        self._open: dict[tuple[str, int, str], list[str]] = {}  # models by place and effect

    def unread(self) -> Iterator[Unread]:
        for (path, line, effect), names in self._open.items():
            more = len(names) - _NAMES_SHOWN
            listed = ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
            detail = f"{effect} (of {listed})"
            yield Unread(path=path, line=line, reason=UnreadReason.SETTING, detail=detail)

    def compare(self, before: DbtProject, after: DbtProject) -> None:
        known = {(model.path, model.name): model for model in before.all_models}
        for model in self._affected_models(after):
            was = known.get((model.path, model.name)) or before.models.get(model.path)
            if was is not None:
                self._compare_model(was, model, before, after)

    def _affected_models(self, project: DbtProject) -> list[DbtModelFile]:
        """Return the models whose options an edited file can set."""
        own = {p: pair for p, pair in self._pairs.items() if _is_in(p, project, self._sides[1])}
        edited = (PurePosixPath(project.root) / PROJECT_FILE).as_posix()
        if edited in own:
            return project.all_models
        described = {
            name
            for pair in own.values()
            if pair.is_type(*PROPERTIES)
            for name in _names_in_properties(pair)
        }
        return [m for m in project.all_models if m.path in own or m.name in described]

    def _compare_model(
        self, previous: DbtModelFile, model: DbtModelFile, before: DbtProject, after: DbtProject
    ) -> None:
        path, name = model.path, model.name
        texts = [
            _own_code(side.text(path), one.name)
            for side, one in zip(self._sides, (previous, model), strict=True)
        ]
        old = before.config_of(path, previous.name, texts[0])
        new = after.config_of(path, name, texts[1])
        kind = after.kind_of(path) or "model"
        stored = kind if kind != "model" else ""
        was, will_be = (stored or text(config.get("materialized")) for config in (old, new))
        for option in sorted({*old, *new}):
            values = _plain_value(old.get(option)), _plain_value(new.get(option))
            if values[0] != values[1]:
                self._judge(path, name, option, values, (was, will_be))
        builds = [
            before.build_of(path, previous.name, texts[0]),
            after.build_of(path, name, texts[1]),
        ]
        if builds[0] != builds[1]:
            self.builds[path] = builds[1]

    def _judge(
        self, path: str, name: str, option: str, values: tuple[Any, Any], built: tuple[str, str]
    ) -> None:
        keeps_rows = any(how in _KEEPS_ROWS for how in built)
        table = PurePosixPath(path).stem
        if option in HARMLESS or option in _JUDGED:
            return
        if option == "materialized":
            if any(how in _KEEPS_ROWS for how in built):
                self.changes.append(ModelChange(path, LogicChange(dataset=table)))
            elif any(how not in _REBUILT for how in built):
                self._report(path, name, option, values, "its table may no longer be built")
        elif option in _ROWS:
            if keeps_rows:
                self.changes.append(ModelChange(path, LogicChange(dataset=table)))
        elif option in _LAYOUT:
            if keeps_rows:
                self._report(path, name, option, values, "an existing table needs a full refresh")
        elif option == "enabled" and isinstance(values[1], str) and values[1] == "false":
            self.changes.append(ModelChange(path, TableDrop(dataset=table)))
        elif option == "enabled" and values[1] in (None, "true") and values[0] == "false":
            return  # a new table
        elif option in _RELATION:
            self._report(path, name, option, values, "the table is built in another place")
        else:
            self._report(path, name, option, values, "the effect of this option is not known")

    def _report(
        self, path: str, name: str, option: str, values: tuple[Any, Any], effect: str
    ) -> None:
        file, line = self._find_setting(path, name, option)
        difference = f"{option}: {_shown(values[0])} -> {_shown(values[1])}: {effect}"
        self._open.setdefault((file, line, difference), []).append(name)

    def _find_setting(self, path: str, name: str, option: str) -> tuple[str, int]:
        """Return the edited file that sets an option of a model, and the line."""
        own = self._pairs.get(path)
        if own is not None and any(
            option in inline_config(source or "") for source in (own.base, own.head)
        ):
            return path, _line_of(own.head or "", option)
        files = [pair for pair in self._pairs.values() if pair.is_type(*PROPERTIES)]
        for pair in files:
            if name in _names_in_properties(pair):
                source = pair.head or ""
                at = source.find(f"name: {name}")
                start = source.count("\n", 0, max(at, 0))
                return pair.path, start + _line_of(source[max(at, 0) :], option)
        for pair in files:
            if PurePosixPath(pair.path).name == PROJECT_FILE:
                return pair.path, _line_of(pair.head or "", option)
        return path, 1


def _own_code(source: str, name: str) -> str:
    """Return the part of a file that is a snapshot; a model has the whole file."""
    return split_snapshots(source).get(name, source)


def _is_in(path: str, project: DbtProject, code: CommitCode) -> bool:
    return project_of(path, code.projects) is project


def _names_in_properties(pair: FilePair) -> set[str]:
    """Return the names of the models, snapshots and seeds in either version of a property file."""
    return {
        text(entry.get("name"))
        for source in (pair.base, pair.head)
        for kind in RESOURCES
        for entry in entries(load_properties(source).get(kind))
    }


def load_properties(source: str | None) -> dict[str, Any]:
    """Return the content of a YAML file; one that does not parse is reported elsewhere."""
    try:
        return mapping(load_yaml(source or ""))
    except YamlError:
        return {}


def list_edited_variables(pair: FilePair) -> set[str]:
    """Return the variables that an edited project file sets to another value."""
    sides = [
        _flatten_variables(load_properties(source).get("vars")) for source in (pair.base, pair.head)
    ]
    return {name for name in {**sides[0], **sides[1]} if sides[0].get(name) != sides[1].get(name)}


def _flatten_variables(variables: object) -> dict[str, list[Any]]:
    """Return variables by name, also those of one package only."""
    found: dict[str, list[Any]] = {}
    for name, value in mapping(variables).items():
        found.setdefault(str(name), []).append(value)
        for inner, part in mapping(value).items():
            found.setdefault(str(inner), []).append(part)
    return found


def list_edited_sources(pair: FilePair) -> set[str]:
    """Return the source tables whose database, schema or name an edited property file changes."""
    sides = [dict(_places(source)) for source in (pair.base, pair.head)]
    keys = (key for key in {**sides[0], **sides[1]} if sides[0].get(key) != sides[1].get(key))
    return {table for _, table in keys}


def _places(source: str | None) -> Iterator[tuple[tuple[str, str], list[Any]]]:
    for entry in entries(load_properties(source).get("sources")):
        for table in entries(entry.get("tables")):
            place = [entry.get(key) for key in ("database", "catalog", "schema", "quoting")]
            key = (text(entry.get("name")), text(table.get("name")))
            yield key, [*place, table.get("identifier"), table.get("quoting")]


def _plain_value(value: Any) -> Any:
    """Return a value in a form that is the same in Python, Jinja and YAML."""
    if isinstance(value, dict):
        return {str(key): _plain_value(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, JinjaExpression):
        return [_plain_value(part) for part in value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and (is_true(value) or value.lower() == "false"):
        return value.lower()
    return value if value is None or isinstance(value, JinjaExpression) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, JinjaExpression):
        return value.source
    return "not set" if value is None else str(value)


def _line_of(source: str, word: str) -> int:
    at = source.find(word)
    return source.count("\n", 0, at) + 1 if at >= 0 else 1
