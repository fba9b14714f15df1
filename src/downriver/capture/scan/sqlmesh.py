"""SQLMesh projects: models and audits in SQL. Models in Python are read as Python."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code import (
    CodeJob,
    ColumnReference,
    DatasetNote,
    DocumentedColumn,
    TableNames,
    add_sql,
    find_references,
    set_query,
)
from downriver.capture.code.dbt_resources import entries
from downriver.capture.scan.dbt.model_config import line_of_word
from downriver.capture.scan.located_text import load_yaml
from downriver.capture.sql import Template, read_rendered, render_sql
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.scan.repository import Repository

_HEADER = re.compile(
    r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|;)*(MODEL|AUDIT)\s*\(", re.IGNORECASE
)
_NAME = re.compile(r"\bname\s+([\w.\"`@{}-]+)", re.IGNORECASE)
_DIALECT = re.compile(r"\bdialect\s+['\"]?(\w+)", re.IGNORECASE)
_DEFAULT_DIALECT = re.compile(
    r"(?:model_defaults:\s{0,40}(?:\n\s{1,40}\w{1,80}:[^\n]{0,200}){0,20}?\n\s{1,40}dialect:\s{0,40}|"
    r"ModelDefaultsConfig\([^)]{0,500}?dialect\s{0,40}=\s{0,40})['\"]?(\w+)"
)
_TIMES = re.compile(r"@(?:start|end|execution)_(?:ds|date|dt|dtntz|ts|tstz|epoch|millis|hour)\b")
_MACRO_STATEMENT = re.compile(r"^[ \t]*@\w+\([^;]{0,1000}\)\s{0,100};", re.MULTILINE)
_MACRO_CALL = re.compile(r"@(\w+)\s*\(")
_VARIABLE = re.compile(r"@\{?(\w+)\}?")
_JINJA = re.compile(r"\bJINJA_(?:QUERY_BEGIN|STATEMENT_BEGIN|END)\s*;", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_THIS_MODEL = re.compile(r"@this_model\b", re.IGNORECASE)
_JINJA_MACRO = re.compile(r"\{%-?\s*macro\b")
_SETTINGS = ("config.yaml", "config.yml", "config.py")


def is_sqlmesh(text: str) -> bool:
    """Return whether a SQL file is a model or an audit of SQLMesh."""
    return _HEADER.match(text) is not None


def list_headers(text: str) -> Iterator[str]:
    """Yield the headers of the models and audits in a file."""
    for header, _ in _blocks(text):
        yield header


def is_external_models(path: str) -> bool:
    """Return whether a file lists external tables that a SQLMesh project reads."""
    file = PurePosixPath(path)
    return file.stem == "external_models" or file.parent.name == "external_models"


def find_default_dialect(repository: Repository, files: list[str], path: str) -> str:
    """Return the dialect that the configuration of a file's project names; "" without one."""
    known = set(files)
    for folder in PurePosixPath(path).parents:
        for name in _SETTINGS:
            place = (folder / name).as_posix()
            match = (
                _DEFAULT_DIALECT.search(repository.read(place) or "") if place in known else None
            )
            if match is not None:
                return match[1].lower()
    return ""


class SqlMeshProject(NamedTuple):
    """The data that all files of a repository's SQLMesh projects use.

    `headers` are those of the models, by name; `macros` the texts of Jinja macros, by path.
    """

    headers: dict[str, str]
    macros: dict[str, str]


def find_sqlmesh_project(repository: Repository, files: list[str]) -> SqlMeshProject:
    """Return the models and macros of the SQLMesh projects in a repository."""
    project = SqlMeshProject({}, {})
    roots = [
        PurePosixPath(path).parent
        for path in files
        if PurePosixPath(path).name in _SETTINGS
        and _DEFAULT_DIALECT.search(repository.read(path) or "")
    ]
    for path in files if roots else ():
        text = (repository.read(path) or "") if path.endswith(".sql") else ""
        if any(PurePosixPath(path).is_relative_to(root / "macros") for root in roots):
            if _JINJA_MACRO.search(text):
                project.macros[path] = text
        elif is_sqlmesh(text):
            project.headers.update(_model_headers(text))
    return project


def _model_headers(text: str) -> Iterator[tuple[str, str]]:
    for header, _ in _blocks(text):
        named = _NAME.search(header)
        if named is not None and header[:5].upper() == "MODEL":
            yield named[1].strip('"`'), header


class SqlMeshFiles:
    """Reads the files of SQLMesh projects."""

    def __init__(
        self, namespace: str, dataset_for: Callable[[str], DatasetId], project: SqlMeshProject
    ) -> None:
        self._namespace = namespace
        self._dataset_for = dataset_for
        self._headers = project.headers
        self._macro_paths = project.macros.keys()
        self._macros = tuple(project.macros.values())

    def is_macro(self, path: str) -> bool:
        """Return whether a file has the Jinja macros of a project."""
        return path in self._macro_paths

    def read_sql(self, path: str, text: str, dialect: str) -> list[CodeJob]:
        """Return the jobs of the models and audits in a file."""
        inline = [name for name, _ in _model_headers(text)]
        return [self._read_block(path, text, block, dialect, inline) for block in _blocks(text)]

    def read_external_models(self, text: str) -> Iterator[DatasetNote]:
        """Yield external tables, with the columns that a project declares for them."""
        for entry in entries(load_yaml(text)):
            columns = entry.get("columns")
            if isinstance(entry.get("name"), str) and isinstance(columns, dict):
                yield DatasetNote(
                    id=self._dataset_for(entry["name"].replace('"', "").replace("`", "")),
                    columns=[DocumentedColumn(str(c), str(t), "") for c, t in columns.items()],
                    description=str(entry.get("description") or ""),
                )

    def _read_block(
        self, path: str, text: str, block: tuple[str, str], dialect: str, inline: list[str]
    ) -> CodeJob:
        """Return the job of a block. An audit in the file of a model belongs to that model."""
        header, body = block
        named = _NAME.search(header)
        name = named[1].strip('"`') if named is not None else _name_of_path(path)
        own = _DIALECT.search(header)
        is_audit = header.lstrip()[:5].upper() == "AUDIT"
        job = CodeJob(
            id=JobId(self._namespace, name),
            integration="SQLMESH",
            kind="TEST" if is_audit else "MODEL",
            path=path,
        )
        dialect = own[1].lower() if own else dialect
        if not is_audit:
            self._read_query(job, _THIS_MODEL.sub(name, body), dialect, self._dataset_for(name))
            _add_header_columns(job, header, text, self._dataset_for(name))
            return job
        audited = (self._audited(name) or inline) if _THIS_MODEL.search(body) else [""]
        for model in audited:
            self._read_query(job, _THIS_MODEL.sub(model, body), dialect, None)
        if not audited:
            message = f"no model with the audit {name} was found"
            job.add_blind_spot(BlindSpotEntry("not_read", message, 1))
        return job

    def _audited(self, audit: str) -> list[str]:
        """Return the models that name an audit."""
        word = re.compile(rf"\b{re.escape(audit)}\b", re.IGNORECASE)
        return [name for name, header in self._headers.items() if word.search(header)]

    def _read_query(self, job: CodeJob, body: str, dialect: str, target: DatasetId | None) -> None:
        query = _without_macros(body, job)
        rendered = render_sql(query, Template(this=job.id.name, macros=self._macros))
        lineage = read_rendered(rendered, dialect=dialect)
        job.dialect = lineage.dialect
        set_query(job, query, rendered)
        add_sql(job, lineage, self._dataset_for, result=target)
        if target is not None:
            job.outputs = [target, *(d for d in job.outputs if d != target)]
            job.inputs = [dataset for dataset in job.inputs if dataset != target]
        names = TableNames(self._dataset_for, {}, job.id.name)
        job.add_references(find_references(query, lineage, names))


def _name_of_path(path: str) -> str:
    """Return the name that SQLMesh infers from the place of a file below `models` or `audits`."""
    file = PurePosixPath(path)
    parts = file.with_suffix("").parts
    tops = [at for at, part in enumerate(parts[:-1]) if part in ("models", "audits")]
    return ".".join(parts[tops[-1] + 1 :]) if tops else file.stem


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each header of a file, with the text up to the next one after as many blank lines."""
    match = _HEADER.match(text)
    while match is not None:
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        end = text.find(";", at)
        end = at if end < 0 or text[at:end].strip() else end + 1
        header = text[match.start(1) : end]
        statement_end = text.find(";", end)
        match = None
        while statement_end >= 0 and match is None:
            match = _HEADER.match(text, statement_end)
            after = text.find(";", statement_end + 1)
            statement_end = statement_end if match is not None else after
        body = text[end:] if match is None else text[end : match.start()]
        yield header, "\n" * text.count("\n", 0, end) + body


def _without_macros(body: str, job: CodeJob) -> str:
    """Return a query with its macros as functions. Their unknown expansion is a blind spot."""

    def note(name: str, at: int) -> None:
        message = f"the macro @{name} is not expanded"
        job.add_blind_spot(BlindSpotEntry("template", message, body.count("\n", 0, at) + 1))

    def call(match: re.Match[str]) -> str:
        note(match[1], match.start())
        return f" {match[1]}("

    def variable(match: re.Match[str]) -> str:
        note(match[1], match.start())
        return f" {match[1]}"

    def statement(match: re.Match[str]) -> str:
        note(match[0].strip().partition("(")[0].lstrip("@"), match.start())
        return "\n" * match[0].count("\n")

    query = _JINJA.sub("", _TIMES.sub(" '1970-01-01'", body))
    query = _MACRO_STATEMENT.sub(statement, query)
    query = _MACRO_CALL.sub(call, query)
    return _VARIABLE.sub(variable, query)


def _add_header_columns(job: CodeJob, header: str, text: str, target: DatasetId) -> None:
    """Add references to the columns that keys, partitions and audits of the header name."""
    words = {word.casefold() for word in _WORD.findall(header)}
    for edge in [e for e in job.edges if e.target == target]:
        column = edge.target_field
        if column.casefold() in words:
            line = line_of_word(text, column)
            job.add_reference(
                ColumnReference(
                    dataset=edge.source, field=edge.source_field, line=line, clause="other",
                    text=text.splitlines()[line - 1].strip(),
                )
            )  # fmt: skip
