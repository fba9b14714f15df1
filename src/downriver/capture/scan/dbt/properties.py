"""The property files of a dbt project: tests, documentation, exposures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from downriver.capture.code import (
    CodeJob,
    ColumnReference,
    DatasetNote,
    DocumentedColumn,
    add_sql,
)
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
from downriver.capture.scan.dbt.model_config import COLUMN_OPTIONS, list_columns
from downriver.capture.scan.dbt.semantics import read_semantics
from downriver.capture.scan.dbt.unit_tests import UnitTestRows
from downriver.capture.scan.located_text import LocatedText
from downriver.capture.sql import read_rendered, render_sql
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.dbt.project import DbtProject

_KINDS = ("models", "seeds", "snapshots")
_TEST_OPTIONS = frozenset({"name", "description", "config", "where", "severity", "tags", "meta"})
_COLUMN_WORDS = ("column", "expression", "condition", "field", "key", "group_by", "filter", "order")


class PropertyFile:
    """One property file of a dbt project."""

    def __init__(
        self,
        path: str,
        content: dict[str, Any],
        namespace: str,
        dataset_for: Callable[[str], DatasetId],
        project: DbtProject,
    ) -> None:
        self._path = path
        self._content = content
        self._namespace = namespace
        self._dataset_for = dataset_for
        self._project = project
        self._names = project.names

    def jobs(
        self,
        tests_of: Callable[[DatasetId], JobId | None],
        exposed: Callable[[str], tuple[JobId, DatasetId] | None],
    ) -> Iterator[CodeJob]:
        """Yield one job for the tests and documentation of the file, and one for each consumer.

        Tests of a table are added to their job in the catalog, if there is one.
        """
        own = JobId(self._namespace, self._path.rpartition(".")[0])
        jobs: dict[JobId, CodeJob] = {}
        for dataset, entry in self._tables():
            key = (tests_of(dataset) if _has_tests(entry) else None) or own
            if key not in jobs:
                kind = "PROPERTIES" if key == own else "TEST"
                jobs[key] = CodeJob(id=key, integration="DBT", kind=kind, path=self._path)
            self._add_references(jobs[key], dataset, entry)
        yield from (job for job in jobs.values() if job.references or job.inputs or job.spots)
        for test in entries(self._content.get("unit_tests")):
            yield self._unit_test(test)
        yield from read_semantics(
            self._path, self._content, self._namespace, self._find_dataset, self._project
        )
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
            for table in entries(source.get("tables")):
                key = f"{source.get('name')}.{table.get('name')}"
                if key in self._names:
                    inherited = {
                        name: source[name] for name in ("loaded_at_field",) if name in source
                    }
                    yield self._dataset_for(self._names[key]), {**inherited, **table}

    def _add_references(self, job: CodeJob, dataset: DatasetId, entry: dict[str, Any]) -> None:
        for column in entries(entry.get("columns")):
            named = column.get("name")
            if not isinstance(named, LocatedText):
                continue
            tests = [*items(column.get("tests")), *items(column.get("data_tests"))]
            self._add_reference(job, dataset, named, "test" if tests else "doc", f"name: {named}")
            for test in tests:
                self._add_test(job, dataset, test, named)
        for test in [*items(entry.get("tests")), *items(entry.get("data_tests"))]:
            self._add_test(job, dataset, test)
        config = mapping(entry.get("config"))
        for option in COLUMN_OPTIONS:
            for name in list_columns(config.get(option)):
                if isinstance(name, LocatedText):
                    self._add_reference(job, dataset, name, "other", f"{option}: {name}")
        for place in (entry, config):
            self._add_expression(job, dataset, place.get("loaded_at_field"), "loaded_at_field")
            freshness = mapping(place.get("freshness"))
            self._add_expression(job, dataset, freshness.get("filter"), "freshness filter")
            self._add_query(job, place.get("loaded_at_query"))

    def _add_test(self, job: CodeJob, dataset: DatasetId, test: Any, column: str = "") -> None:
        """Add what a test of a table or column uses: columns, expressions, other tables."""
        job.add_input(dataset)
        if not isinstance(test, dict):
            return
        name = next((text(key) for key in test if key not in _TEST_OPTIONS), "")
        given = mapping(test.get(name)) or test
        arguments = {**given, **mapping(given.get("arguments"))}
        other = self._find_dataset(text(arguments.get("to")))
        if self._add_rendered_test(job, dataset, name, arguments, column):
            arguments = {}
        for key, value in arguments.items():
            for part in (value, *items(value)):
                if not isinstance(part, LocatedText):
                    continue
                resource = self._find_dataset(part)
                if resource is not None:
                    job.add_input(resource)
                elif key == "field" and other is not None:
                    self._add_reference(job, other, part, "test", f"name: {part}")
                elif _names_columns(key):
                    self._add_expression(job, dataset, part, name)
        for place in (test, given):
            where = mapping(place.get("config")).get("where") or place.get("where")
            self._add_expression(job, dataset, where, name)

    def _add_rendered_test(
        self, job: CodeJob, dataset: DatasetId, name: str, arguments: dict[str, Any], column: str
    ) -> bool:
        """Add the columns that the SQL of a generic test of this project uses.

        Return whether its macro is defined, and renders to readable SQL.
        """
        if not _is_defined(name, self._project.macros):
            return False
        options = {key: v for key, v in arguments.items() if key not in _NO_ARGUMENTS}
        if column:
            options["column_name"] = column
        given = ", ".join(f"{key}={_as_literal(value)}" for key, value in options.items())
        call = f"test_{name}(api.Relation.create(identifier='{_OWN_TABLE}'), {given})"
        rendered = render_sql(f"{{{{ {call} }}}}", self._project.template(""))
        lineage = read_rendered(rendered, dialect=self._project.dialect)
        if rendered.blind_spots or lineage.blind_spots:
            return False
        for table in lineage.inputs:
            if table.casefold() != _OWN_TABLE:
                job.add_input(self._dataset_for(table))
        sources = [edge.source for edge in [*lineage.column_edges, *lineage.dataset_edges]]
        for used in dict.fromkeys(s.column for s in sources if s.table.casefold() == _OWN_TABLE):
            if used != "*":
                line = _line_of_argument(arguments, used) or job.line
                self._add_reference(job, dataset, LocatedText(used, line), "test", name)
        return True

    def _add_expression(self, job: CodeJob, dataset: DatasetId, value: Any, what: str) -> None:
        """Add the columns that a SQL expression over a table uses, on their own lines."""
        if not isinstance(value, LocatedText) or not value.strip():
            return
        job.add_input(dataset)
        # This SQL is parsed and never executed.
        lineage = read_rendered(
            render_sql(f"select 1 from own_table where {value}", self._project.template("")),  # noqa: S608
            dialect=self._project.dialect,
        )
        if not lineage.column_edges and not lineage.dataset_edges:
            lineage = read_rendered(
                render_sql(f"select {value} from own_table", self._project.template("")),  # noqa: S608
                dialect=self._project.dialect,
            )
        sources = [edge.source for edge in [*lineage.column_edges, *lineage.dataset_edges]]
        for column in dict.fromkeys(source.column for source in sources):
            if column != "*":
                line = LocatedText(column, value.line + _line_within(value, column))
                self._add_reference(job, dataset, line, "test", f"{what}: {value.strip()}")
        if any(spot.kind in ("unparsed", "template", "unreadable") for spot in lineage.blind_spots):
            message = f"the expression of {what or 'a property'} cannot be read: {value.strip()}"
            job.add_blind_spot(BlindSpotEntry("unparsed", message, value.line))

    def _add_query(self, job: CodeJob, value: Any) -> None:
        if isinstance(value, LocatedText):
            rendered = render_sql(value, self._project.template(""))
            lineage = read_rendered(rendered, dialect=self._project.dialect)
            add_sql(job, lineage, self._dataset_for, first_line=value.line)

    def _add_reference(
        self, job: CodeJob, dataset: DatasetId, name: LocatedText, clause: Clause, shown: str
    ) -> None:
        job.add_reference(
            ColumnReference(
                dataset=dataset, field=str(name), line=name.line, clause=clause, text=shown
            )
        )

    def _unit_test(self, test: dict[str, Any]) -> CodeJob:
        """Return the job of a unit test. It names columns of a model and of its inputs."""
        name = test.get("name")
        job = CodeJob(
            id=JobId(self._namespace, f"unit_test.{name}"),
            integration="DBT",
            kind="TEST",
            path=self._path,
            line=name.line if isinstance(name, LocatedText) else 1,
            description=text(test.get("description")),
        )
        model = text(test.get("model"))
        tables = [(self._dataset_for(self._names.get(model, model)), mapping(test.get("expect")))]
        for given in entries(test.get("given")):
            dataset = self._find_dataset(text(given.get("input")))
            if dataset is not None:
                tables.append((dataset, given))
        rows = UnitTestRows(job, self._project, self._dataset_for)
        for dataset, block in tables:
            job.add_input(dataset)
            rows.add(dataset, block)
        return job

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


_OWN_TABLE = "own_table"
_NO_ARGUMENTS = _TEST_OPTIONS | {"arguments"}


def _is_defined(test: str, macros: tuple[str, ...]) -> bool:
    """Whether macro files define a generic test."""
    opening = re.compile(rf"\{{%-?\s*(?:data_)?test\s+{re.escape(test)}\b")
    return bool(test) and any(opening.search(macro) for macro in macros)


def _as_literal(value: Any) -> str:
    """Return a value of YAML as a literal of Jinja."""
    if isinstance(value, dict):
        pairs = (f"{_as_literal(key)}: {_as_literal(part)}" for key, part in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_literal, value))}]"
    return repr(str(value) if isinstance(value, str) else value)


def _line_of_argument(value: Any, column: str) -> int:
    """Return the line of the first argument that contains a column, 0 if there is none."""
    if isinstance(value, LocatedText):
        return value.line if column.casefold() in value.casefold() else 0
    parts = value.values() if isinstance(value, dict) else items(value)
    return next((line for part in parts if (line := _line_of_argument(part, column))), 0)


def _has_tests(entry: dict[str, Any]) -> bool:
    tested = [entry, *entries(entry.get("columns"))]
    return any(part.get("tests") or part.get("data_tests") for part in tested)


def _names_columns(argument: str) -> bool:
    """Whether an argument of a test is a column or an expression, by its name."""
    return any(word in argument.lower() for word in _COLUMN_WORDS)


def _line_within(value: str, column: str) -> int:
    """Return the number of lines before a column in a text of several lines."""
    at = value.lower().find(column.lower())
    return value.count("\n", 0, at) if at > 0 else 0


def is_property_file(content: Any) -> bool:
    """Whether a YAML file looks like one of dbt's property files."""
    wanted = {
        "models", "sources", "seeds", "snapshots", "exposures", "unit_tests", "semantic_models",
        "metrics", "saved_queries",
    }  # fmt: skip
    return isinstance(content, dict) and bool(wanted & content.keys()) and "name" not in content


def _is_complete(entry: dict[str, Any]) -> bool:
    """Whether all columns are listed. Only an enforced contract guarantees this."""
    return is_true(mapping(mapping(entry.get("config")).get("contract")).get("enforced"))
