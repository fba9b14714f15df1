"""Exposures, semantic models, metrics and saved queries as jobs that read tables."""

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
    list_tags,
    mapping,
    text,
    texts,
)
from downriver.capture.dbt.artifacts import Artifacts
from downriver.capture.dbt.nodes import DbtNode
from downriver.capture.sql import parse_sql_lineage
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.capture.dbt.artifacts import PropertyLines
    from downriver.capture.dbt.models import DbtModels
    from downriver.capture.dbt.nodes import DbtNaming
    from downriver.model.ids import DatasetId

_FOLDERS = {
    "dashboard": "dashboards", "notebook": "notebooks", "analysis": "analyses", "ml": "ml",
    "application": "applications",
}  # fmt: skip
_METRIC_CALL = re.compile(r"\bmetric\(\s*['\"](\w+)['\"]\s*\)")


class DbtConsumers:
    """Reads the consumers of a project's tables."""

    def __init__(
        self,
        artifacts: Artifacts,
        nodes: Mapping[str, DbtNode],
        models: DbtModels,
        places: PropertyLines,
    ) -> None:
        self._artifacts = artifacts
        self._nodes = nodes
        self._models = models
        self._places = places
        self._measures: dict[str, DatasetId] = {}
        self._dimensions: dict[str, DatasetId] = {}

    def read(self, naming: DbtNaming) -> Iterator[CodeJob]:
        """Yield one job for each consumer, semantic models before metrics."""
        for key, raw in self._artifacts.resources("semantic_models").items():
            yield self._semantic_model(key, raw, naming)
        for key, raw in self._artifacts.resources("metrics").items():
            yield self._metric(key, raw, naming)
        for key, raw in self._artifacts.resources("saved_queries").items():
            yield self._saved_query(key, raw, naming)
        for key, raw in self._artifacts.resources("exposures").items():
            yield self._exposure(key, raw, naming)

    def _job(self, key: str, raw: dict[str, Any], kind: str, naming: DbtNaming) -> CodeJob:
        path = text(raw.get("original_file_path"))
        job = CodeJob(
            id=naming.consumer_job(key),
            integration="DBT",
            kind=kind,
            path=path,
            line=self._places.line(path, text(raw.get("name"))),
            description=text(raw.get("description")) or text(raw.get("label")),
            owners=list_owners(raw),
            tags=list_tags(raw),
        )
        for parent in texts(mapping(raw.get("depends_on")).get("nodes")):
            self._read_parent(job, parent, naming)
        return job

    def _read_parent(self, job: CodeJob, key: str, naming: DbtNaming) -> None:
        node = self._nodes.get(key)
        if node is not None:
            stored = [node] if node.is_stored else self._models.parents(node)
            for parent in stored:
                job.add_input(naming.dataset(parent))
            return
        folder = {"metric": "metrics", "semantic_model": "semantic_models"}.get(key.split(".")[0])
        if folder is not None:
            job.add_input(naming.consumer(folder, key.rpartition(".")[2]))

    def _exposure(self, key: str, raw: dict[str, Any], naming: DbtNaming) -> CodeJob:
        job = self._job(key, raw, "EXPOSURE", naming)
        folder = _FOLDERS.get(text(raw.get("type")), "exposures")
        job.add_output(naming.consumer(folder, text(raw.get("name"))))
        return job

    def _semantic_model(self, key: str, raw: dict[str, Any], naming: DbtNaming) -> CodeJob:
        job = self._job(key, raw, "SEMANTIC_MODEL", naming)
        target = naming.consumer("semantic_models", text(raw.get("name")))
        job.add_output(target)
        table = self._table(raw)
        for kind in ("entities", "dimensions", "measures"):
            for part in entries(raw.get(kind)):
                name = text(part.get("name"))
                expression = str(part.get("expr") or name)
                self._derive(job, table, expression, target, name, text(part.get("agg")))
                known = self._measures if kind == "measures" else self._dimensions
                known[name] = target
        return job

    def _table(self, raw: dict[str, Any]) -> str:
        """Return the table of a semantic model, or of a metric of an old manifest."""
        relation = mapping(raw.get("node_relation"))
        named = (relation.get(part) for part in ("database", "schema_name", "alias"))
        table = ".".join(part for part in map(text, named) if part)
        if table:
            return table
        parents = texts(mapping(raw.get("depends_on")).get("nodes"))
        node = self._nodes.get(parents[0]) if parents else None
        return node.relation if node is not None else ""

    def _derive(
        self,
        job: CodeJob,
        table: str,
        expression: str,
        target: DatasetId,
        name: str,
        agg: str = "",
        clause: str = "select",
    ) -> None:
        """Add the columns that an expression uses."""
        quoted = ".".join(f'"{part}"' for part in table.split("."))
        # This SQL is parsed and never executed.
        lineage = parse_sql_lineage(
            f"select {expression} as made from {quoted}",  # noqa: S608
            dialect="postgres",
            schema=self._models.columns_of,
        )
        for edge in lineage.column_edges:
            source = self._models.dataset_for(edge.source.table)
            subtype = "AGGREGATION" if agg else edge.subtype
            if clause == "filter":
                subtype = "FILTER"
            job.edges.append(
                CodeEdge(
                    source=source, source_field=edge.source.column, target=target,
                    target_field="*" if clause == "filter" else name, subtype=subtype,
                    confidence=edge.resolution, expression=expression,
                )
            )  # fmt: skip
            job.add_reference(
                ColumnReference(
                    dataset=source, field=edge.source.column, line=job.line,
                    clause="filter" if clause == "filter" else "select", text=expression,
                )
            )  # fmt: skip

    # Metrics

    def _metric(self, key: str, raw: dict[str, Any], naming: DbtNaming) -> CodeJob:
        job = self._job(key, raw, "METRIC", naming)
        name = text(raw.get("name"))
        target = naming.consumer("metrics", name)
        job.add_output(target)
        if "type_params" in raw:
            self._semantic_metric(job, raw, name, target, naming)
        else:
            self._old_metric(job, raw, name, target, naming)
        return job

    def _old_metric(
        self, job: CodeJob, raw: dict[str, Any], name: str, target: DatasetId, naming: DbtNaming
    ) -> None:
        """Read a metric of a manifest without semantic models: an expression over a model."""
        table, expression = self._table(raw), text(raw.get("expression")) or text(raw.get("sql"))
        for other in _METRIC_CALL.findall(expression):
            job.add_aggregation(naming.consumer("metrics", other), other, target, name)
        if table and expression and "metric(" not in expression:
            agg = text(raw.get("calculation_method")) or text(raw.get("type"))
            self._derive(job, table, expression, target, name, agg or "sum")
        for part in [text(raw.get("timestamp")), *texts(raw.get("dimensions"))]:
            if table and part:
                self._derive(job, table, part, target, "*", clause="filter")
        for condition in entries(raw.get("filters")):
            if table and text(condition.get("field")):
                column = text(condition.get("field"))
                self._derive(job, table, column, target, "*", clause="filter")

    def _semantic_metric(
        self, job: CodeJob, raw: dict[str, Any], name: str, target: DatasetId, naming: DbtNaming
    ) -> None:
        params = mapping(raw.get("type_params"))
        for measure in _measure_names(params):
            if measure in self._measures:
                job.add_input(self._measures[measure])
                job.add_aggregation(self._measures[measure], measure, target, name)
        inputs = [params.get("numerator"), params.get("denominator"), *items(params.get("metrics"))]
        for metric in map(mapping, inputs):
            other = text(metric.get("name"))
            if other:
                job.add_input(naming.consumer("metrics", other))
                job.add_aggregation(naming.consumer("metrics", other), other, target, name)
        self._read_filters(job, raw, target)

    def _read_filters(self, job: CodeJob, raw: dict[str, Any], target: DatasetId) -> None:
        """Add the dimensions that the filters and groups of a metric or saved query name."""
        parts = {name: raw.get(name) for name in ("filter", "type_params", "query_params")}
        for where in dict.fromkeys(list_filters(parts)):
            for _, dimension in list_semantic_fields(where):
                source = self._dimensions.get(dimension)
                if source is None:
                    message = f"a filter uses {dimension}, which no semantic model has"
                    job.add_blind_spot(BlindSpotEntry("not_read", message, job.line))
                    continue
                job.add_input(source)
                job.edges.append(
                    CodeEdge(
                        source=source, source_field=dimension, target=target,
                        target_field="*", subtype="FILTER", expression=where,
                    )
                )  # fmt: skip
                job.add_reference(
                    ColumnReference(
                        dataset=source, field=dimension, line=job.line, clause="filter", text=where
                    )
                )

    def _saved_query(self, key: str, raw: dict[str, Any], naming: DbtNaming) -> CodeJob:
        job = self._job(key, raw, "SAVED_QUERY", naming)
        target = naming.consumer("saved_queries", text(raw.get("name")))
        job.add_output(target)
        for metric in texts(mapping(raw.get("query_params")).get("metrics")):
            job.add_input(naming.consumer("metrics", metric))
            job.add_aggregation(naming.consumer("metrics", metric), metric, target, metric)
        self._read_filters(job, raw, target)
        return job


def _measure_names(params: dict[str, Any]) -> list[str]:
    given = [params.get("measure"), *items(params.get("input_measures"))]
    named = [text(mapping(measure).get("name")) or text(measure) for measure in given]
    return list(dict.fromkeys(name for name in named if name))
