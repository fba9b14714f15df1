"""The property files of a dbt project: tests, documentation, exposures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.code import CodeJob, ColumnReference, DatasetNote, DocumentedColumn
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
from downriver.capture.scan.located_text import LocatedText
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.dbt.project import DbtProject

_KINDS = ("models", "seeds", "snapshots")


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
            for table in entries(source.get("tables")):
                key = f"{source.get('name')}.{table.get('name')}"
                if key in self._names:
                    yield self._dataset_for(self._names[key]), table

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
