"""dbt's property files: what they test and document, and who uses what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from downriver.capture.code import CodeJob, Column, DatasetNote, Reference
from downriver.capture.scan.dbt_project import source_tables
from downriver.capture.scan.python.values import Text
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.code.job import Clause

_REF = re.compile(r"ref\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"]([^'\"]+)['\"]")
_SOURCE = re.compile(r"source\(\s*['\"]([^'\"]+)['\"]\s*,\s*['\"]([^'\"]+)['\"]")
_KINDS = ("models", "seeds", "snapshots")


class PropertyFile:
    """One property file of a dbt project."""

    def __init__(
        self,
        path: str,
        content: dict[str, Any],
        namespace: str,
        dataset_for: Callable[[str], DatasetId],
        names: dict[str, str],
    ) -> None:
        self._path = path
        self._content = content
        self._namespace = namespace
        self._dataset_for = dataset_for
        self._names = names

    def jobs(
        self,
        tests_of: Callable[[DatasetId], JobId | None],
        exposed: Callable[[str], tuple[JobId, DatasetId] | None],
    ) -> Iterator[CodeJob]:
        """Yield a job for the tests and documents of the file, and one for each exposure.

        A table whose tests dbt has told of already has a job of its own for them.
        """
        own = JobId(self._namespace, self._path.rpartition(".")[0])
        found: dict[JobId, CodeJob] = {}
        for dataset, entry in self._tables():
            key = (tests_of(dataset) if _has_tests(entry) else None) or own
            if key not in found:
                kind = "PROPERTIES" if key == own else "TEST"
                found[key] = CodeJob(id=key, integration="DBT", kind=kind, path=self._path)
            self._refer(found[key], dataset, entry)
        yield from (job for job in found.values() if job.references)
        for exposure in _entries(self._content.get("exposures")):
            yield self._exposure(exposure, exposed(_text(exposure.get("name"))))

    def notes(self) -> Iterator[DatasetNote]:
        """Yield what the file says of tables."""
        for dataset, entry in self._tables():
            columns = [
                Column(str(c["name"]), _text(c.get("data_type")), _text(c.get("description")))
                for c in _entries(entry.get("columns"))
                if isinstance(c.get("name"), str)
            ]
            meta = {**_meta(entry.get("config")), **_meta(entry)}
            note = DatasetNote(
                id=dataset,
                columns=columns if _is_complete(entry) else [],
                description=_text(entry.get("description")),
                owners=[_text(meta.get("owner"))] if _text(meta.get("owner")) else [],
                tags=_tags(entry, meta),
            )
            if note.columns or note.description or note.owners or note.tags:
                yield note

    def _tables(self) -> Iterator[tuple[DatasetId, dict[str, Any]]]:
        for kind in _KINDS:
            for entry in _entries(self._content.get(kind)):
                name = _text(entry.get("name"))
                if name:
                    yield self._dataset_for(self._names.get(name, name)), entry
        for source in _entries(self._content.get("sources")):
            tables = source_tables(source)
            for table in _entries(source.get("tables")):
                key = f"{source.get('name')}.{table.get('name')}"
                if key in tables:
                    yield self._dataset_for(tables[key]), table

    def _refer(self, job: CodeJob, dataset: DatasetId, entry: dict[str, Any]) -> None:
        for column in _entries(entry.get("columns")):
            name = column.get("name")
            if not isinstance(name, Text):
                continue
            tests = _list(column.get("tests")) + _list(column.get("data_tests"))
            self._note(job, dataset, name, "test" if tests else "doc")
            if tests:
                job.reads(dataset)
            for test in tests:
                self._related(job, test)

    def _related(self, job: CodeJob, test: Any) -> None:
        """A relationships test names a column of another table."""
        for arguments in test.values() if isinstance(test, dict) else ():
            given = arguments if isinstance(arguments, dict) else {}
            nested = given.get("arguments")
            inner = nested if isinstance(nested, dict) else given
            field = inner.get("field")
            other = self._named(_text(inner.get("to")))
            if isinstance(field, Text) and other is not None:
                job.reads(other)
                self._note(job, other, field, "test")

    def _note(self, job: CodeJob, dataset: DatasetId, name: Text, clause: Clause) -> None:
        job.refers(
            Reference(
                dataset=dataset,
                field=str(name),
                line=name.line,
                clause=clause,
                text=f"name: {name}",
            )
        )

    def _named(self, text: str) -> DatasetId | None:
        ref, source = _REF.search(text), _SOURCE.search(text)
        if ref is not None:
            return self._dataset_for(self._names.get(ref[1], ref[1]))
        if source is not None:
            key = ".".join(source.groups())
            return self._dataset_for(self._names.get(key, key))
        return None

    def _exposure(self, exposure: dict[str, Any], known: tuple[JobId, DatasetId] | None) -> CodeJob:
        name = exposure.get("name")
        job_id, dataset_id = known or (
            JobId(self._namespace, f"exposure.{name}"),
            DatasetId(self._namespace, f"exposures/{name}"),
        )
        owner = exposure.get("owner")
        people = _text(owner.get("name")) if isinstance(owner, dict) else ""
        job = CodeJob(
            id=job_id,
            integration="DBT",
            kind="EXPOSURE",
            path=self._path,
            line=name.line if isinstance(name, Text) else 1,
            description=_text(exposure.get("description")),
            owners=[people] if people else [],
        )
        for text in _list(exposure.get("depends_on")):
            dataset = self._named(_text(text))
            if dataset is not None:
                job.reads(dataset)
        job.writes(dataset_id)
        return job


def _has_tests(entry: dict[str, Any]) -> bool:
    columns = _entries(entry.get("columns"))
    return any(column.get("tests") or column.get("data_tests") for column in columns)


def is_property_file(content: Any) -> bool:
    """Whether a YAML file looks like one of dbt's property files."""
    wanted = {"models", "sources", "seeds", "snapshots", "exposures"}
    return isinstance(content, dict) and bool(wanted & content.keys()) and "name" not in content


def _is_complete(entry: dict[str, Any]) -> bool:
    """Only a contract says that the columns listed are all there are."""
    config = entry.get("config")
    contract = config.get("contract") if isinstance(config, dict) else None
    return isinstance(contract, dict) and _text(contract.get("enforced")).lower() == "true"


def _entries(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else ""


def _meta(value: Any) -> dict[str, Any]:
    meta = value.get("meta") if isinstance(value, dict) else None
    return meta if isinstance(meta, dict) else {}


def _tags(entry: dict[str, Any], meta: dict[str, Any]) -> list[str]:
    config = entry.get("config")
    given = [entry.get("tags"), config.get("tags") if isinstance(config, dict) else None]
    found = [
        str(t) for v in given for t in (v if isinstance(v, list) else [v]) if isinstance(t, str)
    ]
    found += [w for w in ("certified", "pii") if _text(meta.get(w)).lower() == "true"]
    return list(dict.fromkeys(found))
