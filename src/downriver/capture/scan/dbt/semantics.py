"""Semantic models, metrics and saved queries in the property files of a dbt project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from downriver.capture.code import CodeEdge, CodeJob, ColumnReference
from downriver.capture.code.dbt_resources import (
    entries,
    items,
    list_filters,
    list_owners,
    list_semantic_fields,
    mapping,
    text,
    texts,
)
from downriver.capture.scan.located_text import LocatedText
from downriver.capture.sql import parse_sql_lineage
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.capture.scan.dbt.project import DbtProject

_METRIC_NAMES = ("numerator", "denominator", "base_metric", "conversion_metric")
_TAG = re.compile(r"[{][{](?:(?![{][{]).)*?[}][}]")


def read_semantics(
    path: str,
    content: dict[str, Any],
    namespace: str,
    find_dataset: Callable[[str], DatasetId | None],
    project: DbtProject,
) -> Iterator[CodeJob]:
    """Yield one job for each semantic model, metric and saved query of a property file."""
    reader = _Semantics(path, namespace, find_dataset, project)
    for entry in entries(content.get("semantic_models")):
        yield reader.semantic_model(entry)
    for entry in entries(content.get("metrics")):
        yield reader.metric(entry)
    for entry in entries(content.get("saved_queries")):
        yield reader.saved_query(entry)


class _Semantics:
    def __init__(
        self,
        path: str,
        namespace: str,
        find_dataset: Callable[[str], DatasetId | None],
        project: DbtProject,
    ) -> None:
        self._path = path
        self._namespace = namespace
        self._find_dataset = find_dataset
        self._project = project

    def semantic_model(self, entry: dict[str, Any]) -> CodeJob:
        """Return the job of a semantic model: it derives its parts from the columns of a model."""
        job, target = self._job(entry, "semantic_model", "semantic_models")
        source = self._find_dataset(text(entry.get("model")))
        if source is None:
            return job
        job.add_input(source)
        for kind in ("entities", "dimensions", "measures"):
            for part in entries(entry.get(kind)):
                expression = part.get("expr") or part.get("name")
                if isinstance(expression, LocatedText):
                    self._derive(job, source, expression, target, text(part.get("name")), part)
        return job

    def metric(self, entry: dict[str, Any]) -> CodeJob:
        """Return the job of a metric: it derives from measures, other metrics or a model."""
        job, target = self._job(entry, "metric", "metrics")
        name = text(entry.get("name"))
        params = mapping(entry.get("type_params"))
        for measure in [params.get("measure"), *items(params.get("input_measures"))]:
            self._read(job, self._owner(_name(measure)), _name(measure), target, name)
        metrics = [params.get(key) for key in _METRIC_NAMES] + items(params.get("metrics"))
        for other in filter(None, map(_name, metrics)):
            self._read(job, self._dataset("metrics", other), other, target, name)
        self._read_filters(job, entry, target)
        model = self._find_dataset(text(entry.get("model")))
        expression = entry.get("expression") or entry.get("sql")
        if model is not None and isinstance(expression, LocatedText):
            job.add_input(model)
            self._derive(job, model, expression, target, name, entry)
            for column in (entry.get("timestamp"), *items(entry.get("dimensions"))):
                if isinstance(column, LocatedText):
                    self._derive(job, model, column, target, "*", {})
        return job

    def saved_query(self, entry: dict[str, Any]) -> CodeJob:
        """Return the job of a saved query."""
        job, target = self._job(entry, "saved_query", "saved_queries")
        for metric in texts(mapping(entry.get("query_params")).get("metrics")):
            self._read(job, self._dataset("metrics", metric), metric, target, metric)
        self._read_filters(job, entry, target)
        return job

    def _read_filters(self, job: CodeJob, entry: dict[str, Any], target: DatasetId) -> None:
        """Add the dimensions that the filters and groups of a metric or saved query name."""
        for condition in list_filters(entry):
            line = condition.line if isinstance(condition, LocatedText) else job.line
            for field in list_semantic_fields(condition):
                owners = self._project.dimensions.get(field.name, [])
                owners = [o for o in owners if field.entity in o[1]] or owners
                if not owners:
                    message = f"a filter uses {field.name}, which no semantic model has"
                    job.add_blind_spot(BlindSpotEntry("not_read", message, line))
                for owner, _ in owners:
                    source = self._dataset("semantic_models", owner)
                    job.add_input(source)
                    job.edges.append(
                        CodeEdge(
                            source=source, source_field=field.name, target=target,
                            target_field="*", subtype="FILTER", expression=condition.strip(),
                        )
                    )  # fmt: skip
                    job.add_reference(
                        ColumnReference(
                            dataset=source, field=field.name, line=line, clause="filter",
                            text=condition.strip(),
                        )
                    )  # fmt: skip

    def _job(self, entry: dict[str, Any], kind: str, folder: str) -> tuple[CodeJob, DatasetId]:
        name = entry.get("name")
        target = self._dataset(folder, text(name))
        job = CodeJob(
            id=JobId(self._namespace, f"{kind}.{name}"),
            integration="DBT",
            kind=kind.upper(),
            path=self._path,
            line=name.line if isinstance(name, LocatedText) else 1,
            description=text(entry.get("description")) or text(entry.get("label")),
            owners=list_owners(entry),
            outputs=[target],
        )
        return job, target

    def _dataset(self, folder: str, name: str) -> DatasetId:
        return DatasetId(self._namespace, f"{folder}/{name}")

    def _owner(self, measure: str) -> DatasetId | None:
        """Return the semantic model of a measure."""
        owner = self._project.measures.get(measure)
        return None if owner is None else self._dataset("semantic_models", owner)

    def _read(
        self, job: CodeJob, source: DatasetId | None, field: str, target: DatasetId, name: str
    ) -> None:
        if source is None:
            return
        job.add_input(source)
        job.add_aggregation(source, field, target, name)

    def _derive(
        self,
        job: CodeJob,
        source: DatasetId,
        expression: LocatedText,
        target: DatasetId,
        name: str,
        part: dict[str, Any],
    ) -> None:
        # This SQL is parsed and never executed.
        lineage = parse_sql_lineage(
            f"select {_TAG.sub('null', expression)} as made from own_table",  # noqa: S608
            dialect=self._project.dialect,
        )
        for edge in lineage.column_edges:
            job.edges.append(
                CodeEdge(
                    source=source, source_field=edge.source.column, target=target,
                    target_field=name, subtype="AGGREGATION" if part.get("agg") else edge.subtype,
                    confidence="inferred", expression=str(expression),
                )
            )  # fmt: skip
            job.add_reference(
                ColumnReference(
                    dataset=source, field=edge.source.column, line=expression.line,
                    clause="select", text=str(expression),
                )
            )  # fmt: skip


def _name(value: Any) -> str:
    return text(value) or text(mapping(value).get("name"))


def list_measures(properties: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the semantic model of each measure, by the name of the measure."""
    return {
        text(measure.get("name")): text(model.get("name"))
        for content in properties
        for model in entries(content.get("semantic_models"))
        for measure in entries(model.get("measures"))
    }


def list_dimensions(
    properties: Iterable[dict[str, Any]],
) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """Return the semantic models with each dimension or entity, and the entities of each model."""
    dimensions: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for content in properties:
        for model in entries(content.get("semantic_models")):
            owned = {text(entity.get("name")) for entity in entries(model.get("entities"))}
            owner = (
                text(model.get("name")),
                frozenset({*owned, text(model.get("primary_entity"))}),
            )
            parts = [*entries(model.get("dimensions")), *entries(model.get("entities"))]
            for part in parts:
                dimensions.setdefault(text(part.get("name")), []).append(owner)
    return dimensions
