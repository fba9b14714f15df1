"""Dataform projects: the actions in `.sqlx` files. Actions that JavaScript creates are not read.

The placeholders of a file are converted to those of dbt (`${ref("a")}` to `{{ ref('a') }}`), so
that the reader of templates can render them. Any other expression of JavaScript is an unknown
value.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code import (
    CodeJob,
    ColumnReference,
    DatasetNote,
    TableNames,
    add_sql,
    find_references,
    set_query,
)
from downriver.capture.scan.dbt.model_config import line_of_word
from downriver.capture.scan.located_text import load_yaml
from downriver.capture.sql import Template, read_rendered, render_sql
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from downriver.capture.scan.repository import Repository

SQLX = ".sqlx"
_BLOCK = re.compile(
    r"^[^\S\n]*(config|js|pre_operations|post_operations|input\b[^{\n]*)(?<!\s)\s*\{", re.MULTILINE
)
_ENTRY = re.compile(r"""(?:^|[{,\s])(\w+)\s*:\s*(["'`])((?:(?!\2).)*)\2""", re.DOTALL)
_LIST = re.compile(r"\b(\w+)\s*:\s*\[([^\[\]]*)\]")
_TEXT = re.compile(r"""(["'`])((?:(?!\1).)*)\1""", re.DOTALL)
_CONSTANT = re.compile(
    r"""\bconst\s+(\w+)\s*=\s*([\d.]+|"[^"\n]*"|'[^'\n]*'|`[^`$]*`)\s*(?:;|$)""", re.MULTILINE
)
_DECLARE = re.compile(r"\bdeclare\s*\(\s*(\{(?:(?!\bdeclare\b).)*?\})\s*\)", re.DOTALL)
_CALL = re.compile(r"\s*(?:ctx\.)?(\w+)\s*\((.*)\)\s*\Z", re.DOTALL)
_KEYS = ("uniqueKey", "uniqueKeys", "nonNull", "clusterBy")
_SETTINGS = ("dataform.json", "workflow_settings.yaml", "workflow_settings.yml")
_STORED = frozenset({"table", "view", "incremental", "inline", ""})


class DataformAction(NamedTuple):
    """The `config` of a file: its type, its table, and the text of the block."""

    type: str
    table: str
    config: str


class DataformProject(NamedTuple):
    """The tables of a repository by their names in `ref`, and the default names."""

    names: dict[str, str]
    database: str = ""
    schema: str = ""


def find_dataform_project(repository: Repository, files: list[str]) -> DataformProject:
    """Return the tables of the Dataform project in a repository."""
    database, schema = _default_names(repository)
    project = DataformProject({}, database, schema)
    for path in files:
        if path.endswith(SQLX):
            project.names.update(
                _ref_names(_action(path, repository.read(path) or "", project).table)
            )
    for path in repository.files([".js"]) if project.names else ():
        for declared in _DECLARE.findall(repository.read(path) or ""):
            project.names.update(_ref_names(_table(_entries(declared), "", project)))
    return project


def _default_names(repository: Repository) -> tuple[str, str]:
    for name in _SETTINGS:
        text = repository.read(name)
        if not text:
            continue
        try:
            config = json.loads(text) if name.endswith(".json") else load_yaml(text)
        except ValueError:
            continue
        if isinstance(config, dict):
            database = config.get("defaultDatabase") or config.get("defaultProject") or ""
            schema = config.get("defaultSchema") or config.get("defaultDataset") or ""
            return str(database), str(schema)
    return "", ""


def _ref_names(table: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a table in `ref`: its name alone, with the schema, with the database."""
    parts = table.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[-count:]), table


def _entries(text: str) -> dict[str, str]:
    return {name: value for name, _, value in _ENTRY.findall(text)}


def _table(entries: Mapping[str, str], name: str, project: DataformProject) -> str:
    parts = (
        entries.get("database") or entries.get("project") or project.database,
        entries.get("schema") or entries.get("dataset") or project.schema,
        entries.get("name") or name,
    )
    return ".".join(part for part in parts if part)


def _action(path: str, text: str, project: DataformProject) -> DataformAction:
    config = next((body for kind, body, _, _ in _blocks(text) if kind == "config"), "")
    entries = _entries(config)
    kind = entries.get("type", "")
    named = {} if kind == "test" else entries  # the dataset of a test is the checked one
    return DataformAction(kind, _table(named, PurePosixPath(path).stem, project), config)


def _blocks(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield the blocks of a file: kind, content, and where they start and end."""
    at = 0
    while (match := _BLOCK.search(text, at)) is not None:
        at = _closing(text, match.end())
        yield match[1].split()[0], text[match.end() : at - 1], match.start(1), at


def _closing(text: str, at: int) -> int:
    """Return the position after the brace that closes the one opened before `at`."""
    depth, quote = 1, ""
    while at < len(text) and depth:
        character = text[at]
        if character == "\\":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character == "{") - (character == "}")
        at += 1
    return at


class DataformFiles:
    """Reads the files of a Dataform project."""

    def __init__(
        self, namespace: str, dataset_for: Callable[[str], DatasetId], project: DataformProject
    ) -> None:
        self._namespace = namespace
        self._dataset_for = dataset_for
        self._project = project

    def read(self, path: str, text: str) -> tuple[list[CodeJob], list[DatasetNote]]:
        """Return the jobs of an action, and the declared properties of its table."""
        action = _action(path, text, self._project)
        target = self._dataset_for(action.table)
        description = _entries(action.config).get("description", "")
        notes = [DatasetNote(id=target, description=description)] if description else []
        if action.type == "declaration":
            return [], notes
        job = CodeJob(
            id=JobId(self._namespace, action.table),
            integration="DATAFORM",
            kind="TEST" if action.type in ("assertion", "test") else "MODEL",
            path=path,
        )
        if action.type == "test":
            message = "unit tests of Dataform are not read"
            job.add_blind_spot(BlindSpotEntry("not_read", message, 1))
            return [job], notes
        filled = target if action.type in _STORED else None
        if action.type == "operations" and re.search(r"\bhasOutput\s*:\s*true\b", action.config):
            job.add_output(target)
        self._read_query(job, _sql_of(text), action.table, filled)
        for column in _key_columns(action.config):
            line = line_of_word(text, column)
            job.add_reference(
                ColumnReference(
                    dataset=target, field=column, line=line, clause="other",
                    text=text.splitlines()[line - 1].strip(),
                )
            )  # fmt: skip
        return [job], notes

    def _read_query(self, job: CodeJob, sql: str, this: str, target: DatasetId | None) -> None:
        template = Template(this=this, names=self._project.names)
        rendered = render_sql(sql, template)
        lineage = read_rendered(rendered, dialect="bigquery")
        job.dialect = lineage.dialect
        set_query(job, sql, rendered)
        add_sql(job, lineage, self._dataset_for, result=target)
        if target is not None:
            job.outputs = [target, *(d for d in job.outputs if d != target)]
            job.inputs = [dataset for dataset in job.inputs if dataset != target]
        names = TableNames(
            self._dataset_for, {k.casefold(): v for k, v in self._project.names.items()}, this
        )
        job.add_references(find_references(sql, lineage, names))


def _key_columns(config: str) -> list[str]:
    """Return the columns that keys and clusters of a `config` name."""
    listed = [text for name, items in _LIST.findall(config) if name in _KEYS for text in [items]]
    columns = [column for items in listed for _, column in _TEXT.findall(items)]
    columns += [v for k, v in _entries(config).items() if k in (*_KEYS, "partitionBy")]
    return [column for column in dict.fromkeys(columns) if re.fullmatch(r"\w+", column)]


def _sql_of(text: str) -> str:
    """Return the SQL of a file on its own lines, with placeholders as those of dbt."""
    parts, at = [], 0
    constants: dict[str, str] = {}
    for kind, body, start, end in _blocks(text):
        parts.append(text[at:start])
        if kind in ("pre_operations", "post_operations"):
            opening = text[start:end].partition("{")[0]
            parts += ["\n" * opening.count("\n"), ";", body.rstrip().rstrip(";"), ";"]
            parts.append("\n" * (len(body) - len(body.rstrip())))
        else:
            parts.append("\n" * text.count("\n", start, end))
        if kind == "js":
            constants.update((name, value.strip("\"'`")) for name, value in _CONSTANT.findall(body))
        at = end
    parts.append(text[at:])
    return _with_tags("".join(parts), constants)


def _with_tags(sql: str, constants: Mapping[str, str]) -> str:
    """Replace `${…}` by tags of dbt, and `---`, which separates operations, by a semicolon."""
    parts, at = [], 0
    while (start := sql.find("${", at)) >= 0:
        end = _closing(sql, start + 2)
        parts += [sql[at:start], _tag(sql[start + 2 : end - 1], constants)]
        at = end
    text = "".join([*parts, sql[at:]])
    return re.sub(r"^---\s*$", ";", text, flags=re.MULTILINE)


def _tag(expression: str, constants: Mapping[str, str]) -> str:
    """Return an expression of JavaScript as a tag of dbt, on as many lines."""
    if expression.strip() in constants:
        return constants[expression.strip()]
    call = _CALL.match(expression)
    name, given = (call[1], call[2]) if call is not None else ("", "")
    if name == "self":
        return "{{ this }}"
    if name == "when":
        texts = [text for quote, text in _TEXT.findall(given) if quote == "`"]
        return _with_tags(texts[0], constants) if texts else ""
    texts = [text for _, text in _TEXT.findall(given)]
    if name in ("ref", "resolve") and texts:
        entries = _entries(given)
        parts = [entries[k] for k in ("schema", "dataset", "name") if k in entries] or texts
        return _reference(parts) + "\n" * expression.count("\n")
    words = "_".join(re.findall(r"[A-Za-z]\w*", expression)[:4]) or "value"
    return "{{ " + words + " }}" + "\n" * expression.count("\n")


def _reference(parts: list[str]) -> str:
    if len(parts) == 1:
        return "{{ ref('" + parts[0] + "') }}"
    return "{{ source('" + "', '".join(parts[-2:]) + "') }}"
